package main

import (
	"time"
)

// figures holds the figures of one subject.
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

// Memory is the memory of an operator at rest, in bytes, after a garbage collection.
type Memory struct {
	Resident int64 `json:"residentBytes"` // of the process, without its program file
	Heap     int64 `json:"heapBytes"`     // of which Go objects
}

func memoryOf(s sample) Memory { return Memory{s.Resident, s.Heap} }

func (m Memory) minus(other Memory) Memory {
	return Memory{m.Resident - other.Resident, m.Heap - other.Heap}
}

func (m Memory) over(objects int) Memory {
	return Memory{m.Resident / int64(objects), m.Heap / int64(objects)}
}

// Rest holds the activity of an operator while objects do not change.
type Rest struct {
	Seconds  float64       `json:"seconds"`
	CPU      time.Duration `json:"cpuNanoseconds"`
	Requests requests      `json:"requests"`
}

// Restart holds the cost of a restart with objects that are all handled.
type Restart struct {
	Ready    time.Duration `json:"readyNanoseconds"` // since the start of the process
	CPU      time.Duration `json:"cpuNanoseconds"`   // in total, until it is at rest
	Requests requests      `json:"requests"`
	Memory   Memory        `json:"memory"`
	Peak     int64         `json:"peakBytes"` // the most memory until then, without the program file
	// FirstChange is how long it takes to handle an object that is created when another restart is ready. Zero if
	// that was not measured.
	FirstChange time.Duration `json:"firstChangeNanoseconds"`
}
