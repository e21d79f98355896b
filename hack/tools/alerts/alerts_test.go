package alerts

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// who are the labels of the operators of the scenarios.
const who = `namespace="ns",job="metrics",operator="mine",pod="a"`

// metric returns a series of the operator. The values are those of minutes: see the
// documentation of rule tests.
func metric(name, more, values string) string {
	if more != "" {
		more = "," + more
	}
	return name + "{" + who + more + "} " + values + "\n"
}

// healthy is the operator without any trouble.
var healthy = metric("kopf_build_info", "", "1x90") + metric("kopf_leading", "", "1x90") + metric("kopf_paused", "", "0x90") +
	metric("kopf_ready", "", "1x90") + metric("kopf_workers", "", "5x90") + metric("kopf_workers_busy", "", "1x90") +
	metric("kopf_handler_attempts_total", `resource="kex",handler="fn",outcome="failed"`, "0x90") +
	metric("kopf_handler_attempts_total", `resource="kex",handler="fn",outcome="retried"`, "0x90") +
	metric("kopf_handler_attempts_total", `resource="kex",handler="fn",outcome="succeeded"`, "0+5x90") +
	metric("kopf_object_writes_total", `resource="kex",reason="handled",answer="rejected"`, "0x90") +
	metric("kopf_object_writes_total", `resource="kex",reason="handled",answer="conflict"`, "0+1x90") +
	metric("kopf_object_errors_total", `resource="kex"`, "0x90") + metric("kopf_watches", `resource="kex",state="failing"`, "0x90") +
	metric("kopf_watch_restarts_total", `resource="kex",reason="failed"`, "0x90") + metric("kopf_queue_oldest_seconds", "", "1x90") +
	metric("kopf_calls_waiting", "", "0x90") + metric("kopf_calls_longest_seconds", "", "5x90") +
	metric("kopf_objects_held", `resource="kex",reason="failure"`, "0x90") +
	metric("kopf_rollout_objects", `resource="kex",handler="fn",revision="2",state="failed"`, "0x90") +
	metric("kopf_background_handlers", `kind="daemon",state="abandoned"`, "0x90") +
	metric("kopf_admission_reviews_total", `kind="validate",handler="check",outcome="failed"`, "0x90") +
	metric("kopf_admission_errors_total", `code="404"`, "0x90") + metric("kopf_admission_errors_total", `code="503"`, "3x90") +
	metric("kopf_admission_duration_seconds_bucket", `kind="validate",handler="check",le="0.5"`, "0+5x90") +
	metric("kopf_admission_duration_seconds_bucket", `kind="validate",handler="check",le="+Inf"`, "0+5x90") +
	metric("kopf_conversions_total", `resource="sites",from="v1alpha1",to="v1",outcome="failed"`, "0x90") +
	metric("kopf_certificate_expiry_timestamp_seconds", "", "2592000x90") +
	metric("kopf_events_total", `outcome="dropped"`, "0x90") +
	`rest_client_requests_total{namespace="ns",job="metrics",pod="a",code="403"} 0x90` + "\n"

// with replaces the series of the healthy operator whose metrics the scenario has, if they are
// the same or if the scenario begins with a minus.
func with(series string) string {
	var lines []string
	for line := range strings.Lines(healthy) {
		name := line[:strings.LastIndex(line, "} ")+1]
		if !strings.Contains(series, name) && !strings.HasPrefix(line, strings.TrimPrefix(series, "-")+"{") {
			lines = append(lines, line)
		}
	}
	if strings.HasPrefix(series, "-") {
		series = ""
	}
	return strings.Join(lines, "") + series
}

func TestAlertsFire(t *testing.T) {
	all := definitions(t)
	for _, s := range scenarios() {
		t.Run(s.alert+"/"+s.what, func(t *testing.T) {
			i := slices.IndexFunc(all, func(d definition) bool { return d.Alert == s.alert })
			if i < 0 {
				t.Fatal("there is no such alert")
			}
			s.check(t, evaluate(t, all[i], with(s.series)))
		})
	}
}

func (s scenario) check(t *testing.T, seen evaluation) {
	t.Helper()
	if s.fires == nil && len(seen.firing) > 0 {
		t.Errorf("it fires in the minutes %v: %s", seen.firing, seen.description)
	}
	if s.fires != nil && !slices.Equal(seen.firing, s.fires) {
		t.Errorf("it fires in the minutes %v, want %v", seen.firing, s.fires)
	}
	if s.brief != (s.fires == nil && len(seen.pending) > 0) {
		t.Errorf("its condition holds without firing in the minutes %v", seen.pending)
	}
	if !strings.Contains(seen.description, s.says) {
		t.Errorf("it says %q, without %q; its labels are %s", seen.description, s.says, seen.labels)
	}
}

// Every alert has a scenario in which it fires, and one in which it almost does: its condition holds
// for too short a time, or a value is just below the limit. No alert fires for a healthy operator.
func TestAlertsAreComplete(t *testing.T) {
	for _, d := range definitions(t) {
		t.Run(d.Alert, func(t *testing.T) {
			has := func(what func(scenario) bool) bool {
				return slices.ContainsFunc(scenarios(), func(s scenario) bool { return s.alert == d.Alert && what(s) })
			}
			if !has(func(s scenario) bool { return s.fires != nil }) {
				t.Error("no scenario lets it fire")
			}
			if !has(func(s scenario) bool { return s.fires == nil && s.brief == (d.For > 0) }) {
				t.Error("no scenario almost lets it fire")
			}
			if seen := evaluate(t, d, healthy); len(seen.firing)+len(seen.pending) > 0 {
				t.Errorf("its condition holds for a healthy operator, in the minutes %v: %s", append(seen.pending, seen.firing...), seen.description)
			}
			for _, key := range []string{"summary", "description", "runbook_url"} {
				if d.Annotations[key] == "" {
					t.Errorf("it has no %s", key)
				}
			}
			if !slices.Contains([]string{"critical", "warning", "info"}, d.Labels["severity"]) {
				t.Errorf("its severity is %q", d.Labels["severity"])
			}
			checkRunbook(t, d.Annotations["runbook_url"])
		})
	}
}

// checkRunbook checks that the section of the guide exists.
func checkRunbook(t *testing.T, url string) {
	t.Helper()
	page, anchor, ok := strings.Cut(strings.TrimPrefix(url, "https://github.com/kopf-go/kopf/blob/main/"), "#")
	text, err := os.ReadFile("../../../" + page)
	if err != nil || !ok {
		t.Fatalf("%s: %v", url, err)
	}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(text), -1) {
		if strings.ReplaceAll(strings.ToLower(heading[1]), " ", "-") == anchor {
			return
		}
	}
	t.Errorf("there is no section for %s", url)
}

// The guide lists all alerts.
func TestAlertsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, want []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(Kopf[A-Za-z]+)` \\| ([a-z]+) \\| (.+?) \\|").FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, strings.Join(row[1:], ", "))
	}
	for _, d := range definitions(t) {
		want = append(want, strings.Join([]string{d.Alert, d.Labels["severity"], d.Annotations["summary"]}, ", "))
	}
	if !slices.Equal(documented, want) {
		t.Errorf("docs/metrics.md lists\n%s\nand the file has\n%s", strings.Join(documented, "\n"), strings.Join(want, "\n"))
	}
}
