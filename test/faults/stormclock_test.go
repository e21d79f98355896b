package faults

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"time"
)

// stepClock moves the times at which handlers began and ended, as if the clock had been wrong when
// the last operator has written them. It must not matter for anything but timeouts, which is why a
// handler with a timeout has never begun long ago.
func (s *subject) stepClock(dice *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	obj, err := s.storm.cluster.Current(s.object)()
	if err != nil || s.absent {
		s.storm.try(err)
		return
	}
	step := oneOf(dice, -time.Hour, time.Second, time.Hour)
	annotations := obj.GetAnnotations()
	stepped := false
	for key, text := range annotations {
		if isRecord(key) && (step > 0 || key != ourPrefix+"timed") {
			annotations[key] = movedBy(text, step)
			stepped = stepped || annotations[key] != text
		}
	}
	if !stepped {
		return
	}
	obj.SetAnnotations(annotations)
	err = s.storm.cluster.Client().Update(context.Background(), obj)
	s.changed("moved by "+step.String()+" the times of", obj, err)
}

// movedBy returns a record with other times. The time of the next attempt stays.
func movedBy(text string, step time.Duration) string {
	record := map[string]any{}
	if json.Unmarshal([]byte(text), &record) != nil || record["started"] == littered {
		return text
	}
	for _, name := range []string{"started", "stopped"} {
		at, _ := record[name].(string)
		if then, err := time.Parse(timeFormat, at); err == nil {
			record[name] = then.Add(step).Format(timeFormat)
		}
	}
	return textOf(record)
}

// timeFormat is that of the times in records.
const timeFormat = "2006-01-02T15:04:05.000000-07:00"
