package main

import (
	"time"
)

// figures are what was measured of one subject.
type figures struct {
	Subject     string `json:"subject"`
	Description string `json:"description"`

	Create Phase `json:"create"`
	Update Phase `json:"update"`
	Delete Phase `json:"delete"`
	// Empty and Loaded are the memory at rest, without objects and with all.
	Empty          Memory  `json:"empty"`
	Loaded         Memory  `json:"loaded"`
	BytesPerObject Memory  `json:"perObject"`
	Rest           Rest    `json:"rest"`
	Restart        Restart `json:"restart"`
}

// Phase is what it took to handle one change of every object.
type Phase struct {
	Seconds          float64       `json:"seconds"` // from the first request of the load until all is handled
	ObjectsPerSecond float64       `json:"objectsPerSecond"`
	CPUPerObject     time.Duration `json:"cpuNanosecondsPerObject"`
	WritesPerObject  float64       `json:"writesPerObject"`
	ReadsPerObject   float64       `json:"readsPerObject"`
	EventsPerObject  float64       `json:"eventsPerObject"`
	Conflicts        int           `json:"conflicts"`
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
	Resident int64 `json:"residentBytes"` // held by the process, its program file apart
	Heap     int64 `json:"heapBytes"`     // of that, Go objects
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
	Seconds  float64       `json:"seconds"`
	CPU      time.Duration `json:"cpuNanoseconds"`
	Requests requests      `json:"requests"`
}

// Restart is what it takes an operator to find out that everything is handled.
type Restart struct {
	Ready    time.Duration `json:"readyNanoseconds"` // from the start of the process
	CPU      time.Duration `json:"cpuNanoseconds"`   // of all, until it is at rest
	Requests requests      `json:"requests"`
	Memory   Memory        `json:"memory"`
}
