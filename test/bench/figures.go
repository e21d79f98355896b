package main

import (
	"time"
)

// figures are what was measured of one subject.
type figures struct {
	Subject, Description string

	Create, Update, Delete Phase
	// Empty and Loaded are the memory at rest, without objects and with all.
	Empty, Loaded  Memory
	BytesPerObject Memory
	Rest           Rest
	Restart        Restart
}

// Phase is what it took to handle one change of every object.
type Phase struct {
	Seconds          float64 // from the first request of the load until all is handled
	ObjectsPerSecond float64
	CPUPerObject     time.Duration
	WritesPerObject  float64
	ReadsPerObject   float64
	EventsPerObject  float64
	Conflicts        int
}

func newPhase(objects int, took time.Duration, before, after sample) Phase {
	n := float64(objects)
	made := after.Requests.minus(before.Requests)
	return Phase{
		Seconds:          took.Seconds(),
		ObjectsPerSecond: n / took.Seconds(),
		CPUPerObject:     (after.CPU - before.CPU) / time.Duration(objects),
		WritesPerObject:  float64(made.Writes) / n,
		ReadsPerObject:   float64(made.Reads) / n,
		EventsPerObject:  float64(made.Events) / n,
		Conflicts:        made.Conflicts,
	}
}

// Memory is of an operator at rest, in bytes, after a garbage collection.
type Memory struct {
	Resident int64 // held by the process, its program file apart
	Heap     int64 // of that, Go objects
}

func memoryOf(s sample) Memory { return Memory{s.Resident, s.Heap} }

func (m Memory) minus(other Memory) Memory {
	return Memory{m.Resident - other.Resident, m.Heap - other.Heap}
}

func (m Memory) over(objects int) Memory {
	return Memory{m.Resident / int64(objects), m.Heap / int64(objects)}
}

// Rest is what an operator does while nothing happens.
type Rest struct {
	Seconds  float64
	CPU      time.Duration
	Requests requests
}

// Restart is what it takes an operator to find out that everything is handled.
type Restart struct {
	Ready    time.Duration // from the start of the process
	CPU      time.Duration // of all, until it is at rest
	Requests requests
	Memory   Memory
}
