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
	metric("kopf_calls_waiting", "", "0 3 0x88") + metric("kopf_calls_longest_seconds", "", "5x90") +
	metric("kopf_objects_held", `resource="kex",reason="failure"`, "0x90") +
	metric("kopf_rollout_objects", `resource="kex",handler="fn",revision="2",state="failed"`, "0x90") +
	metric("kopf_background_handlers", `kind="daemon",state="abandoned"`, "0x90") +
	metric("kopf_admission_reviews_total", `kind="validate",handler="check",outcome="failed"`, "0x90") +
	metric("kopf_admission_errors_total", `code="404"`, "0x90") + metric("kopf_admission_errors_total", `code="503"`, "3x90") +
	metric("kopf_admission_duration_seconds_bucket", `kind="validate",handler="check",le="0.5"`, "0+5x90") +
	metric("kopf_admission_duration_seconds_bucket", `kind="validate",handler="check",le="+Inf"`, "0+5x90") +
	metric("kopf_certificate_expiry_timestamp_seconds", "", "2592000x90") +
	metric("kopf_events_total", `outcome="dropped"`, "0x90") +
	`rest_client_requests_total{namespace="ns",job="metrics",pod="a",code="403"} 0x90` + "\n"

// scenario is what must let an alert fire, from one minute to another. The series replace those
// of the healthy operator.
type scenario struct {
	alert, what string
	series      string
	from, to    int // with 0, 0: never
	says        string
}

func scenarios() []scenario {
	attempts := func(outcome, values string) string {
		return metric("kopf_handler_attempts_total", `resource="kex",handler="fn",outcome="`+outcome+`"`, values)
	}
	reviews := func(values string) string {
		return metric("kopf_admission_reviews_total", `kind="validate",handler="check",outcome="failed"`, values)
	}
	refusals := func(code, values string) string {
		return metric("kopf_admission_errors_total", `code="`+code+`"`, values)
	}
	standby := strings.ReplaceAll(metric("kopf_leading", "", "0x90")+metric("kopf_paused", "", "0x90"), `pod="a"`, `pod="b"`)
	other := func(s string) string { return strings.ReplaceAll(s, `pod="a"`, `pod="b"`) }
	return []scenario{
		{"KopfOperatorAbsent", "there never was one", "-kopf_build_info", 5, 89, "of the operator  has been"},
		{"KopfOperatorAbsent", "it disappears", metric("kopf_build_info", "", "1x70 stale"), 76, 89, "No replica"},
		{"KopfOperatorAbsent", "a restart", metric("kopf_build_info", "", "1x70 stale _x2 1x20"), 0, 0, ""},
		{"KopfOperatorAbsent", "another one stays", metric("kopf_build_info", "", "1x70 stale") +
			strings.ReplaceAll(metric("kopf_build_info", "", "1x90"), "mine", "other"), 76, 89, "operator mine has"},
		{"KopfNoActiveReplica", "paused", metric("kopf_paused", "", "1x90"), 5, 89, "operator mine"},
		{"KopfNoActiveReplica", "with a standby", standby, 0, 0, ""},
		{"KopfSeveralActiveReplicas", "two", metric("kopf_leading", "", "1x90") + other(metric("kopf_leading", "", "1x90")+metric("kopf_paused", "", "0x90")), 5, 89, "2 replicas"},
		{"KopfSeveralActiveReplicas", "one is paused", metric("kopf_leading", "", "1x90") + other(metric("kopf_leading", "", "1x90")+metric("kopf_paused", "", "1x90")), 0, 0, ""},
		{"KopfNotReady", "a list fails", metric("kopf_ready", "", "0x90"), 10, 89, "mine"},
		{"KopfNotReady", "a slow start", metric("kopf_ready", "", "0x9 1x80"), 0, 0, ""},
		{"KopfHandlersFail", "the very first failure", attempts("failed", "0x30 1x60"), 31, 44, "handler fn of kex"},
		{"KopfHandlersFail", "a failure before the first scrape", attempts("failed", "_x30 1x60"), 30, 44, "handler fn of kex"},
		{"KopfHandlersFail", "the only scrape begins with it", attempts("failed", "1x90"), 0, 14, "handler fn of kex"},
		{"KopfHandlersFail", "in a process that replaces another", attempts("failed", "3x30 0x9 1x50"), 0, 0, "-"},
		{"KopfHandlersRetry", "most fail", attempts("retried", "0+10x90"), 16, 89, "handler fn"},
		{"KopfHandlersRetry", "few fail", attempts("retried", "0+1x90"), 0, 0, ""},
		{"KopfHandlerHangs", "an hour", metric("kopf_calls_longest_seconds", "", "0+60x90"), 31, 89, "31m 0s"},
		{"KopfHandlersWait", "always", metric("kopf_calls_waiting", "", "1x90"), 5, 89, "mine"},
		{"KopfWorkersExhausted", "all", metric("kopf_workers_busy", "", "5x90"), 10, 89, "mine"},
		{"KopfWorkersExhausted", "for moments", metric("kopf_workers_busy", "", "5x5 1 5x5 1 5x5 1x70"), 0, 0, ""},
		{"KopfObjectsWait", "long", metric("kopf_queue_oldest_seconds", "", "100x90"), 5, 89, "1m 40s"},
		{"KopfWatchFails", "one", metric("kopf_watches", `resource="kex",state="failing"`, "0x10 1x80"), 16, 89, "changes of kex: 1"},
		{"KopfWatchesRestart", "three a minute", metric("kopf_watch_restarts_total", `resource="kex",reason="failed"`, "0+3x90"), 21, 89, "kex"},
		{"KopfWatchesRestart", "some", metric("kopf_watch_restarts_total", `resource="kex",reason="failed"`, "0 1 1 1 2x80"), 0, 0, ""},
		{"KopfWritesRejected", "the very first rejection", metric("kopf_object_writes_total", `resource="kex",reason="handled",answer="rejected"`, "0x30 1x60"), 31, 44, "kex"},
		{"KopfWritesRejected", "of an operator that has just begun", metric("kopf_object_writes_total", `resource="kex",reason="handled",answer="rejected"`, "_x30 1x60"), 30, 44, "kex"},
		{"KopfWriteConflicts", "two a second", metric("kopf_object_writes_total", `resource="kex",reason="handled",answer="conflict"`, "0+120x90"), 23, 89, "kex"},
		{"KopfReconcileErrors", "some", metric("kopf_object_errors_total", `resource="kex"`, "0+1x90"), 16, 89, "kex"},
		{"KopfReconcileErrors", "a single one", metric("kopf_object_errors_total", `resource="kex"`, "0x9 1x80"), 0, 0, ""},
		{"KopfForbidden", "the very first refusal", `rest_client_requests_total{namespace="ns",job="metrics",pod="a",code="403"} 0x30 1x60`, 31, 44, ""},
		{"KopfForbidden", "a series that begins with it", `rest_client_requests_total{namespace="ns",job="metrics",pod="a",code="403"} _x30 1x60`, 30, 44, ""},
		{"KopfForbidden", "of another program", `rest_client_requests_total{namespace="other",job="metrics",pod="a",code="403"} 0x30 1x60`, 0, 0, ""},
		{"KopfObjectsHeld", "one", metric("kopf_objects_held", `resource="kex",reason="failure"`, "0x10 1x80"), 26, 89, "1 objects of kex"},
		{"KopfRolloutStopped", "one", metric("kopf_rollout_objects", `resource="kex",handler="fn",revision="2",state="failed"`, "0x10 1x80"), 26, 89, "revision 2"},
		{"KopfDaemonsAbandoned", "one", metric("kopf_background_handlers", `kind="daemon",state="abandoned"`, "0x10 1x80"), 26, 89, "mine"},
		{"KopfAdmissionFails", "the very first failure", reviews("0x30 1x60"), 31, 44, "handler check"},
		{"KopfAdmissionFails", "a series that begins with it", reviews("_x30 1x60"), 30, 44, "handler check"},
		{"KopfAdmissionNotAnswered", "the very first", refusals("404", "0x30 1x60"), 31, 44, "status 404"},
		{"KopfAdmissionNotAnswered", "a start", refusals("503", "0x30 9x60"), 0, 0, ""},
		{"KopfAdmissionNotAnswered", "never ready", refusals("503", "0+20x90"), 5, 89, "status 503"},
		{"KopfAdmissionSlow", "most", metric("kopf_admission_duration_seconds_bucket", `kind="validate",handler="check",le="0.5"`, "0x90") +
			metric("kopf_admission_duration_seconds_bucket", `kind="validate",handler="check",le="5"`, "0+5x90") +
			metric("kopf_admission_duration_seconds_bucket", `kind="validate",handler="check",le="+Inf"`, "0+5x90"), 16, 89, "check"},
		{"KopfCertificateExpires", "in six days", metric("kopf_certificate_expiry_timestamp_seconds", "", "518400x90"), 60, 89, "5d 23h 0m 0s"},
		{"KopfEventsLost", "many", metric("kopf_events_total", `outcome="dropped"`, "0x10 100x80"), 11, 69, "dropped"},
	}
}

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
			minutes, labels, description := firings(t, all[i], with(s.series))
			if s.to == 0 && s.says == "-" {
				if len(minutes) == 0 || minutes[len(minutes)-1] < 40 {
					t.Errorf("it fires in the minutes %v", minutes)
				}
				return
			}
			if s.to == 0 {
				if len(minutes) > 0 {
					t.Errorf("it fires in the minutes %v", minutes)
				}
				return
			}
			if len(minutes) == 0 || minutes[0] != s.from || minutes[len(minutes)-1] != s.to || len(minutes) != s.to-s.from+1 {
				t.Errorf("it fires in the minutes %v, want %d to %d", minutes, s.from, s.to)
			}
			if !strings.Contains(description, s.says) {
				t.Errorf("it says %q, without %q; its labels are %s", description, s.says, labels)
			}
		})
	}
}

// Every alert has a scenario, and no alert fires for a healthy operator.
func TestAlertsAreComplete(t *testing.T) {
	for _, d := range definitions(t) {
		t.Run(d.Alert, func(t *testing.T) {
			if !slices.ContainsFunc(scenarios(), func(s scenario) bool { return s.alert == d.Alert && s.to > 0 }) {
				t.Error("no scenario lets it fire")
			}
			if minutes, _, description := firings(t, d, healthy); len(minutes) > 0 {
				t.Errorf("it fires for a healthy operator, in the minutes %v: %s", minutes, description)
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
