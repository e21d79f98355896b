package peering

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2020, 12, 31, 12, 0, 0, 123456000, time.UTC)

// longest is the longest lifetime there is.
const longest = 9_223_372_036 * time.Second

func TestEntriesAreWrittenAsKopfDoes(t *testing.T) {
	berlin := time.FixedZone("", 3600)
	tests := map[string]struct {
		record Record
		want   string
	}{
		"all of it":                 {Record{Priority: 100, LastSeen: noon, Lifetime: time.Minute, Lease: ""}, `{"lastseen":"2020-12-31T12:00:00.123456+00:00","lifetime":60,"priority":100}`},
		"a leader":                  {Record{Priority: 0, LastSeen: noon, Lifetime: time.Minute, Lease: "ns/name"}, `{"lastseen":"2020-12-31T12:00:00.123456+00:00","lease":"ns/name","lifetime":60,"priority":0}`},
		"a time of another zone":    {Record{Priority: 0, LastSeen: noon.In(berlin), Lifetime: time.Minute, Lease: ""}, `{"lastseen":"2020-12-31T12:00:00.123456+00:00","lifetime":60,"priority":0}`},
		"a fraction of a second":    {Record{Priority: -1, LastSeen: noon, Lifetime: 1500 * time.Millisecond, Lease: ""}, `{"lastseen":"2020-12-31T12:00:00.123456+00:00","lifetime":2,"priority":-1}`},
		"a time without a fraction": {Record{Priority: 0, LastSeen: noon.Truncate(time.Second), Lifetime: 0, Lease: ""}, `{"lastseen":"2020-12-31T12:00:00.000000+00:00","lifetime":0,"priority":0}`},
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
		entry  any
		want   Record
		broken string
	}{
		"all of it":            {fields{"priority": int64(5), "lifetime": int64(7), "lastseen": "2020-12-31T12:00:00.123456+00:00"}, Record{Priority: 5, LastSeen: noon, Lifetime: 7 * time.Second}, ""},
		"a time without zone":  {fields{"lastseen": "2020-12-31T12:00:00.123456"}, Record{Priority: 0, LastSeen: noon, Lifetime: time.Minute}, ""},
		"a time of a person":   {fields{"lastseen": "2020-12-31T13:00:00.123456+01:00"}, Record{Priority: 0, LastSeen: noon, Lifetime: time.Minute}, ""},
		"nothing":              {fields{}, Record{Priority: 0, Lifetime: time.Minute}, ""},
		"nulls":                {fields{"priority": nil, "lifetime": nil, "lastseen": nil}, Record{Priority: 0, Lifetime: time.Minute}, ""},
		"something new":        {fields{"message": "hello"}, Record{Priority: 0, Lifetime: time.Minute}, ""},
		"numbers in quotes":    {fields{"priority": "-3", "lifetime": "1"}, Record{Priority: -3, Lifetime: time.Second}, ""},
		"numbers of JSON":      {fields{"priority": 3.0, "lifetime": 1.0}, Record{Priority: 3, Lifetime: time.Second}, ""},
		"a long life":          {fields{"lifetime": int64(math.MaxInt64)}, Record{Priority: 0, Lifetime: longest}, ""},
		"a life before birth":  {fields{"lifetime": int64(math.MinInt64)}, Record{Priority: 0, Lifetime: -longest}, ""},
		"a text":               {"hello", Record{}, "it is no entry of an operator, but string"},
		"a list":               {[]any{}, Record{}, "it is no entry of an operator"},
		"half a priority":      {fields{"priority": 0.5}, Record{}, "priority is no whole number: 0.5"},
		"an endless life":      {fields{"lifetime": math.Inf(1)}, Record{}, "lifetime is no whole number: +Inf"},
		"a priority in words":  {fields{"priority": "high"}, Record{}, "priority is no whole number: high"},
		"a time in words":      {fields{"lastseen": "now"}, Record{}, "lastseen is no timestamp"},
		"a time as a number":   {fields{"lastseen": int64(1)}, Record{}, "lastseen is no timestamp"},
		"everything is broken": {fields{"priority": true, "lifetime": true, "lastseen": true}, Record{}, "priority is no whole number: true\nlifetime is"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			records, broken := Parse(map[string]any{"it": test.entry, "fine": fields{}})
			if got := records["it"]; test.broken == "" && got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if err := broken["it"]; (err != nil) != (test.broken != "") || err != nil && !strings.Contains(err.Error(), test.broken) {
				t.Errorf("got the error %v, want %q in it", err, test.broken)
			}
			if _, there := records["fine"]; !there || len(records)+len(broken) != 2 {
				t.Errorf("got %v and %v", records, broken)
			}
		})
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	record := Record{Priority: 32767, LastSeen: noon, Lifetime: time.Hour}
	text, err := json.Marshal(map[string]any{"me": record.encode()})
	if err != nil {
		t.Fatal(err)
	}
	var status map[string]any
	if err := json.Unmarshal(text, &status); err != nil {
		t.Fatal(err)
	}
	if records, broken := Parse(status); records["me"] != record || len(broken) > 0 {
		t.Errorf("got %+v, %v", records, broken)
	}
}
