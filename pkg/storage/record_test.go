package storage_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/storage"
)

var noon = time.Date(2024, 2, 14, 12, 0, 0, 123456000, time.UTC)

func TestRecordMarshals(t *testing.T) {
	for name, test := range map[string]struct {
		record storage.Record
		want   string
	}{
		"a new record has its counters and flags": {
			storage.Record{}, `{"retries":0,"success":false,"failure":false}`,
		},
		"a full record has all fields in a readable order": {
			storage.Record{
				Started: noon, Stopped: noon.Add(time.Second), Delayed: noon.Add(time.Minute), Purpose: cause.Update,
				Retries: 3, Success: true, Failure: true, Message: "<é>", Subrefs: []string{"a/b"},
				Schedule: "CRON_TZ=UTC 0 3 * * *",
			},
			`{"started":"2024-02-14T12:00:00.123456+00:00","stopped":"2024-02-14T12:00:01.123456+00:00",` +
				`"delayed":"2024-02-14T12:01:00.123456+00:00","purpose":"update","retries":3,"success":true,"failure":true,` +
				`"message":"\u003cé\u003e","subrefs":["a/b"],"schedule":"CRON_TZ=UTC 0 3 * * *"}`,
		},
		"times are in UTC and to the microsecond": {
			storage.Record{Started: time.Date(2024, 2, 14, 13, 0, 0, 123456789, time.FixedZone("", 3600))},
			`{"started":"2024-02-14T12:00:00.123456+00:00","retries":0,"success":false,"failure":false}`,
		},
		"invalid times become the nearest valid one": {
			storage.Record{Started: time.Date(2, 1, 1, 0, 0, 0, 0, time.UTC), Delayed: time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)},
			`{"started":"1970-01-01T00:00:00.000000+00:00","delayed":"2261-12-31T23:59:59.000000+00:00","retries":0,"success":false,"failure":false}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(test.record)
			noError(t, err)
			if string(got) != test.want {
				t.Errorf("\n got %s\nwant %s", got, test.want)
			}
			var again storage.Record
			noError(t, json.Unmarshal(got, &again))
			if second, _ := json.Marshal(again); string(second) != test.want {
				t.Errorf("the second time %s", second)
			}
		})
	}
}

func TestRecordUnmarshals(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want storage.Record
	}{
		"a time with a fraction and a zone":      {`{"started": "2024-02-14T12:00:00.123456+00:00"}`, storage.Record{Started: noon}},
		"a time of another zone":                 {`{"started": "2024-02-14T14:00:00.123456+02:00"}`, storage.Record{Started: noon}},
		"a time without a zone is in UTC":        {`{"started": "2024-02-14T12:00:00.123456"}`, storage.Record{Started: noon}},
		"a time without a fraction":              {`{"started": "2024-02-14T12:00:00Z"}`, storage.Record{Started: noon.Truncate(time.Second)}},
		"a time of a machine without a clock":    {`{"stopped": "1970-01-01T00:00:05+00:00"}`, storage.Record{Stopped: time.Unix(5, 0).UTC()}},
		"nulls are absent":                       {`{"started": null, "retries": null, "subrefs": null, "message": null}`, storage.Record{}},
		"unknown keys and spellings are ignored": {`{"retries": 2, "Retries": 3, "future": {"a": [1]}}`, storage.Record{Retries: 2}},
		"everything else": {
			`{"purpose": "delete", "retries": 1, "success": true, "failure": true, "message": "m", "subrefs": ["a", "b"]}`,
			storage.Record{Purpose: "delete", Retries: 1, Success: true, Failure: true, Message: "m", Subrefs: []string{"a", "b"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got storage.Record
			noError(t, json.Unmarshal([]byte(test.text), &got))
			if !sameRecord(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// sameRecord compares what can be seen of two records.
func sameRecord(a, b storage.Record) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		if x.Type().Field(i).IsExported() && !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			return false
		}
	}
	return true
}

func TestRecordIsStoredAsItWasRead(t *testing.T) {
	for name, test := range map[string]struct {
		text   string
		change func(*storage.Record)
		want   string
	}{
		"what was absent stays absent":            {`{"message":"m"}`, func(*storage.Record) {}, `{"message":"m"}`},
		"what was false or zero stays so":         {`{"retries":0,"success":false}`, func(*storage.Record) {}, `{"retries":0,"success":false}`},
		"what gets a value is written":            {`{}`, func(r *storage.Record) { r.Success, r.Retries = true, 1 }, `{"retries":1,"success":true}`},
		"what loses its value is written as such": {`{"success":true}`, func(r *storage.Record) { r.Success = false }, `{"success":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			var record storage.Record
			noError(t, json.Unmarshal([]byte(test.text), &record))
			test.change(&record)
			if got, _ := json.Marshal(record); string(got) != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestBrokenRecords(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"not JSON":              {`{"started": `, "unexpected end of JSON input"},
		"a list":                {`["started"]`, "must be a JSON object"},
		"a string for a number": {`{"retries": "sesame"}`, "retries has a wrong value of type string"},
		"a fraction of a retry": {`{"retries": 1.5}`, "retries has a wrong value of type number"},
		"negative retries":      {`{"retries": -1}`, "-1 is not a valid number of retries"},
		"absurdly many retries": {`{"retries": 9000000000}`, "is not a valid number of retries"},
		"a number for a flag":   {`{"success": 1}`, "success has a wrong value of type number"},
		"a string for a list":   {`{"subrefs": "a"}`, "subrefs has a wrong value of type string"},
		"not a time":            {`{"delayed": "sesame"}`, "delayed is not a timestamp like"},
		"a number for a time":   {`{"delayed": 5}`, "delayed has a wrong value of type number"},
		"a time too early":      {`{"started": "0001-01-01T00:00:00+00:00"}`, "started is in the year 1, outside 1970 to 2261"},
		"a time too late":       {`{"delayed": "9999-12-31T23:59:59+00:00"}`, "delayed is in the year 9999"},
	} {
		t.Run(name, func(t *testing.T) {
			var record storage.Record
			err := json.Unmarshal([]byte(test.text), &record)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "sesame") {
				t.Errorf("the error quotes the value: %v", err)
			}
		})
	}
}

func TestLongMessagesAreTruncated(t *testing.T) {
	record := storage.Record{Message: strings.Repeat("ü", storage.MaxMessage)}
	data, err := json.Marshal(record)
	noError(t, err)
	var again storage.Record
	noError(t, json.Unmarshal(data, &again))
	if len(again.Message) > storage.MaxMessage || !utf8.ValidString(again.Message) || !strings.HasSuffix(again.Message, "ü...") {
		t.Errorf("%d bytes: ...%s", len(again.Message), again.Message[len(again.Message)-10:])
	}
	if third, _ := json.Marshal(again); string(third) != string(data) {
		t.Error("a truncated message is truncated again")
	}
}

func TestRecordsAreEqualAsTheyAreStored(t *testing.T) {
	record := storage.Record{Started: noon, Retries: 1, Message: strings.Repeat("m", 5000), Subrefs: []string{}}
	data, err := json.Marshal(record)
	noError(t, err)
	var fetched storage.Record
	noError(t, json.Unmarshal(data, &fetched))
	var sparse storage.Record
	noError(t, json.Unmarshal([]byte(`{}`), &sparse))
	for name, test := range map[string]struct {
		a, b *storage.Record
		want bool
	}{
		"a record and what was fetched of it": {&record, &fetched, true},
		"two forms of the same instant":       {&storage.Record{Started: noon}, &storage.Record{Started: noon.Local().Add(500)}, true},
		"an absent flag and a false one":      {&sparse, &storage.Record{}, true},
		"another number":                      {&storage.Record{Retries: 1}, &storage.Record{Retries: 2}, false},
		"a record and none":                   {&storage.Record{}, nil, false},
		"none and none":                       {nil, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.a.Equal(test.b); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestFinishedRecords(t *testing.T) {
	for name, test := range map[string]struct {
		record storage.Record
		want   bool
	}{
		"a success is final": {storage.Record{Success: true}, true},
		"a failure is final": {storage.Record{Failure: true}, true},
		"an attempt is not":  {storage.Record{Retries: 5, Message: "not yet"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if test.record.Finished() != test.want {
				t.Errorf("%+v", test.record)
			}
		})
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"started":"2024-02-14T12:00:00.123456","retries":1,"success":false,"subrefs":["a"]}`))
	f.Add([]byte(`{"delayed":"9999-12-31T23:59:59+00:00","message":"\ud800"}`))
	f.Add([]byte(`{"started":"2024-02-14T12:00:00,5-23:59","stopped":"0000-01-01T00:00:00Z"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var first, second storage.Record
		if json.Unmarshal(data, &first) != nil {
			return
		}
		text, err := json.Marshal(first)
		noError(t, err)
		noError(t, json.Unmarshal(text, &second))
		if again, err := json.Marshal(second); err != nil || string(again) != string(text) {
			t.Errorf("%s became %s, %v", text, again, err)
		}
	})
}
