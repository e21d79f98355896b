package faults

// weather decides what can happen in a storm, besides the faults that always can: the more there
// is at once, the less can be checked.
type weather struct {
	// rivals are operators that overlap.
	rivals bool
	// steady storms have one operator, which starts late and never dies: whatever it has forgotten
	// or mistaken stays so.
	steady bool
	// gentle storms have few handlers that fail: most cycles take one pass.
	gentle bool
	// patient others wait for the creation before they change the object, and less fails.
	patient bool
	// background are daemons, timers, event handlers, and indices.
	background bool
	// free objects need a finalizer only if they have a label.
	free bool
	// statusRecords are records in the status.
	statusRecords bool
	// kopf is an operator of Kopf that works between two of ours.
	kopf bool
	// pauses are phases in which it works while ours is paused.
	pauses bool
	// elects is set if there is a replica on standby.
	elects bool
	// lists are outdated for some requests.
	lists bool
	// requests are annotations of people that ask for something.
	requests bool
	// damage is unreadable data of the operator.
	damage bool
	// steps are those of the clock between two operators.
	steps bool
	// families are children of the objects.
	families bool
	// reviews are those of what others write.
	reviews bool
	// shards is their number, which operators share; 0: there are none.
	shards int
	// ordered handlers follow others, and a timer has a schedule.
	ordered bool
	// served handlers of changes are those of a worker.
	served bool
}

func (s *storm) forecast() {
	dice := s.dice("weather")
	s.weather = weather{
		rivals:        dice.IntN(3) == 0,
		steady:        dice.IntN(3) == 0,
		gentle:        dice.IntN(3) == 0,
		patient:       dice.IntN(3) > 0,
		background:    dice.IntN(2) == 0,
		free:          dice.IntN(3) == 0,
		statusRecords: dice.IntN(6) == 0,
		kopf:          dice.IntN(2) == 0,
		pauses:        dice.IntN(4) == 0,
		lists:         dice.IntN(3) == 0,
		requests:      dice.IntN(3) == 0,
		damage:        dice.IntN(3) == 0,
		steps:         dice.IntN(3) == 0,
	}
	if s.rivals || s.statusRecords {
		s.kopf, s.pauses = false, false // Kopf stores its records in annotations, and never works at the same time
	}
	if s.rivals {
		s.steady = false
		s.gentle = dice.IntN(3) > 0 // either has the time to finish a cycle
	}
	if s.families = s.dice("families").IntN(3) == 0; s.families {
		s.kopf, s.pauses = false, false // Kopf makes no children
	}
	s.ordered = s.dice("ordered").IntN(3) == 0
	s.elects = dice.IntN(3) == 0 && !s.rivals && !s.steady && !s.pauses
	if s.dice("shards").IntN(3) == 0 && !s.elects && !s.rivals && !s.pauses {
		s.shards = stormShards
		s.kopf, s.steps = false, false // both are for objects that no operator handles
	}
	if s.served = *serving && !s.rivals; s.served {
		s.ordered = false // the handlers that follow others are in this process, and would run at the same time
	}
	s.reviews = s.elects && s.dice("reviews").IntN(3) > 0
	if s.pauses {
		s.meet()
	}
	s.note("%+v", s.weather)
}

// strict reports whether the outcome of every call is known: no other operator works at the same
// time.
func (s *storm) strict() bool { return !s.rivals }
