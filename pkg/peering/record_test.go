package peering

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2020, 12, 31, 12, 0, 0, 123456000, time.UTC)

// longest is the longest possible lifetime.
const longest = 9_223_372_036 * time.Second

func TestEncodeAsKopf(t *testing.T) {
	berlin := time.FixedZone("", 3600)
	tests := map[string]struct {
		record Record
		want   string
	}{
		"all fields":                           {Record{Priority: 100, LastSeen: noon, Lifetime: time.Minute, Lease: ""}, `{"lastseen":"2020-12-31T12:00:00.123456+00:00","lifetime":60,"priority":100}`},
		"leader":                               {Record{Priority: 0, LastSeen: noon, Lifetime: time.Minute, Lease: "ns/name"}, `{"lastseen":"2020-12-31T12:00:00.123456+00:00","lease":"ns/name","lifetime":60,"priority":0}`},
		"other time zone":                      {Record{Priority: 0, LastSeen: noon.In(berlin), Lifetime: time.Minute, Lease: ""}, `{"lastseen":"2020-12-31T12:00:00.123456+00:00","lifetime":60,"priority":0}`},
		"fraction of a second in the lifetime": {Record{Priority: -1, LastSeen: noon, Lifetime: 1500 * time.Millisecond, Lease: ""}, `{"lastseen":"2020-12-31T12:00:00.123456+00:00","lifetime":2,"priority":-1}`},
		"time without a fraction":              {Record{Priority: 0, LastSeen: noon.Truncate(time.Second), Lifetime: 0, Lease: ""}, `{"lastseen":"2020-12-31T12:00:00.000000+00:00","lifetime":0,"priority":0}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(test.record.encode())
			if err != nil || string(got) != test.want {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
		})
	}
}

func TestParse(t *testing.T) {
	type fields = map[string]any
	tests := map[string]struct {
		entry   any
		want    Record
		invalid string
	}{
		"all fields":                  {fields{"priority": int64(5), "lifetime": int64(7), "lastseen": "2020-12-31T12:00:00.123456+00:00"}, Record{Priority: 5, LastSeen: noon, Lifetime: 7 * time.Second}, ""},
		"time without a zone":         {fields{"lastseen": "2020-12-31T12:00:00.123456"}, Record{Priority: 0, LastSeen: noon, Lifetime: time.Minute}, ""},
		"time in another zone":        {fields{"lastseen": "2020-12-31T13:00:00.123456+01:00"}, Record{Priority: 0, LastSeen: noon, Lifetime: time.Minute}, ""},
		"empty":                       {fields{}, Record{Priority: 0, Lifetime: time.Minute}, ""},
		"nulls":                       {fields{"priority": nil, "lifetime": nil, "lastseen": nil}, Record{Priority: 0, Lifetime: time.Minute}, ""},
		"unknown field":               {fields{"color": "red"}, Record{Priority: 0, Lifetime: time.Minute}, ""},
		"reason of a freeze":          {fields{"message": "hello"}, Record{Priority: 0, Lifetime: time.Minute, Message: "hello"}, ""},
		"quoted numbers":              {fields{"priority": "-3", "lifetime": "1"}, Record{Priority: -3, Lifetime: time.Second}, ""},
		"floating-point numbers":      {fields{"priority": 3.0, "lifetime": 1.0}, Record{Priority: 3, Lifetime: time.Second}, ""},
		"maximum lifetime":            {fields{"lifetime": int64(math.MaxInt64)}, Record{Priority: 0, Lifetime: longest}, ""},
		"negative lifetime":           {fields{"lifetime": int64(math.MinInt64)}, Record{Priority: 0, Lifetime: -longest}, ""},
		"string instead of an object": {"hello", Record{}, "the entry is a string, not an object"},
		"list instead of an object":   {[]any{}, Record{}, "not an object"},
		"fractional priority":         {fields{"priority": 0.5}, Record{}, "priority is not an integer: 0.5"},
		"infinite lifetime":           {fields{"lifetime": math.Inf(1)}, Record{}, "lifetime is not an integer: +Inf"},
		"non-numeric priority":        {fields{"priority": "high"}, Record{}, "priority is not an integer: high"},
		"invalid time":                {fields{"lastseen": "now"}, Record{}, "lastseen is not a timestamp"},
		"numeric time":                {fields{"lastseen": int64(1)}, Record{}, "lastseen is not a timestamp"},
		"several errors":              {fields{"priority": true, "lifetime": true, "lastseen": true}, Record{}, "priority is not an integer: true\nlifetime is"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			records, invalid := Parse(map[string]any{"it": test.entry, "fine": fields{}})
			if got := records["it"]; test.invalid == "" && got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if err := invalid["it"]; (err != nil) != (test.invalid != "") || err != nil && !strings.Contains(err.Error(), test.invalid) {
				t.Errorf("got the error %v, want %q in it", err, test.invalid)
			}
			if _, there := records["fine"]; !there || len(records)+len(invalid) != 2 {
				t.Errorf("got %v and %v", records, invalid)
			}
		})
	}
}

func TestParseReadsWhatEncodeWrites(t *testing.T) {
	record := Record{Priority: 32767, LastSeen: noon, Lifetime: time.Hour}
	text, err := json.Marshal(map[string]any{"me": record.encode()})
	if err != nil {
		t.Fatal(err)
	}
	var status map[string]any
	if err := json.Unmarshal(text, &status); err != nil {
		t.Fatal(err)
	}
	if records, invalid := Parse(status); records["me"] != record || len(invalid) > 0 {
		t.Errorf("got %+v, %v", records, invalid)
	}
}
