package alerts

import "strings"

// scenario is a story of an operator, and the minutes in which it lets an alert fire. The series
// replace those of the healthy operator.
type scenario struct {
	alert, what string
	series      string
	fires       []int // none: never
	// brief means that the condition of the alert holds, but not long enough for it to fire.
	brief bool
	says  string
}

// minutes returns the minutes from one to another.
func minutes(from, to int) (all []int) {
	for minute := from; minute <= to; minute++ {
		all = append(all, minute)
	}
	return all
}

// on returns the scenario of an alert that fires.
func on(alert, what, series string, fires []int, says string) scenario {
	return scenario{alert: alert, what: what, series: series, fires: fires, says: says}
}

// below returns the scenario of an alert whose condition never holds.
func below(alert, what, series string) scenario {
	return scenario{alert: alert, what: what, series: series}
}

// short returns the scenario of an alert whose condition does not hold long enough.
func short(alert, what, series string) scenario {
	return scenario{alert: alert, what: what, series: series, brief: true}
}

// ofPod returns series of another replica, and named those of another operator.
func ofPod(pod, series string) string { return strings.ReplaceAll(series, `pod="a"`, `pod="`+pod+`"`) }

func named(name, series string) string {
	return strings.ReplaceAll(series, `operator="mine"`, `operator="`+name+`"`)
}
func build(values string) string   { return metric("kopf_build_info", "", values) }
func leading(values string) string { return metric("kopf_leading", "", values) }
func paused(values string) string  { return metric("kopf_paused", "", values) }
func restarts(values string) string {
	return metric("kopf_watch_restarts_total", `resource="kex",reason="failed"`, values)
}

func unheld(values string) string   { return metric("kopf_shards_unheld_seconds", "", values) }
func joined(values string) string   { return metric("kopf_shards_joined", "", values) }
func assigned(values string) string { return metric("kopf_shards_assigned", "", values) }

func ownShards(state, values string) string {
	return metric("kopf_shards", `state="`+state+`"`, values)
}

func forbidden(namespace, values string) string {
	return `rest_client_requests_total{namespace="` + namespace + `",job="metrics",pod="a",code="403"} ` + values
}

func attempts(outcome, values string) string {
	return metric("kopf_handler_attempts_total", `resource="kex",handler="fn",outcome="`+outcome+`"`, values)
}

func writes(answer, values string) string {
	return metric("kopf_object_writes_total", `resource="kex",reason="handled",answer="`+answer+`"`, values)
}

func waitingRequests(values string) string { return metric("kopf_api_requests_waiting", "", values) }

func watches(state, values string) string {
	return metric("kopf_watches", `resource="kex",state="`+state+`"`, values)
}

func held(values string) string {
	return metric("kopf_objects_held", `resource="kex",reason="failure"`, values)
}

func rollout(state, values string) string {
	return metric("kopf_rollout_objects", `resource="kex",handler="fn",revision="2",state="`+state+`"`, values)
}

func daemons(state, values string) string {
	return metric("kopf_background_handlers", `kind="daemon",state="`+state+`"`, values)
}

func reviews(outcome, values string) string {
	return metric("kopf_admission_reviews_total", `kind="validate",handler="check",outcome="`+outcome+`"`, values)
}

func refusals(code, values string) string {
	return metric("kopf_admission_errors_total", `code="`+code+`"`, values)
}

func conversions(outcome, values string) string {
	return metric("kopf_conversions_total", `resource="sites",from="v1alpha1",to="v1",outcome="`+outcome+`"`, values)
}

func expiry(values string) string {
	return metric("kopf_certificate_expiry_timestamp_seconds", "", values)
}

func events(outcome, values string) string {
	return metric("kopf_events_total", `outcome="`+outcome+`"`, values)
}

// calls returns the durations of five calls a minute of an admission handler: how many take half a
// second, and how many take 2.5 seconds at most. All take 5 seconds at most.
func calls(half, most string) string {
	bucket := func(le, values string) string {
		return metric("kopf_admission_duration_seconds_bucket", `kind="validate",handler="check",le="`+le+`"`, values)
	}
	return bucket("0.5", half) + bucket("2.5", most) + bucket("5", "0+5x90") + bucket("+Inf", "0+5x90")
}

func scenarios() []scenario { return append(ofOperators(), append(ofHandlers(), ofAdmission()...)...) }

func ofOperators() []scenario {
	stays := named("other", build("1x90"))
	return []scenario{
		on("KopfOperatorAbsent", "there never was one", "-kopf_build_info", minutes(5, 89), "No replica of any operator has"),
		on("KopfOperatorAbsent", "the only one disappears", build("1x70 stale"), minutes(76, 89), "has been scraped"),
		on("KopfOperatorAbsent", "after ten minutes, and another one stays", build("1x10 stale")+stays, minutes(16, 69), "the operator mine has"),
		on("KopfOperatorAbsent", "after its first scrape, and another one stays", build("1 stale")+stays, minutes(6, 59), "the operator mine has"),
		on("KopfOperatorAbsent", "after an hour, and another one stays", build("1x70 stale")+stays, minutes(76, 89), "the operator mine has"),
		on("KopfOperatorAbsent", "an update loses it, and another one stays", build("1x30 stale")+ofPod("b", build("_x29 1x2 stale"))+stays, minutes(37, 89), "the operator mine has"),
		short("KopfOperatorAbsent", "a restart", build("1x70 stale _x2 1x20")),
		short("KopfOperatorAbsent", "an update with Recreate, and another one stays", build("1x30 stale")+ofPod("b", build("_x35 1x54"))+stays),
		below("KopfOperatorAbsent", "a rolling update", build("1x30 stale")+ofPod("b", build("_x30 1x59"))),
		below("KopfOperatorAbsent", "some scrapes fail to arrive", build("1x30 _x4 1x50")),
		on("KopfNoActiveReplica", "paused", paused("1x90"), minutes(5, 89), "operator mine"),
		short("KopfNoActiveReplica", "a takeover", paused("0x9 1x4 0x80")),
		below("KopfNoActiveReplica", "with a standby", ofPod("b", leading("0x90")+paused("0x90"))),
		on("KopfSeveralActiveReplicas", "two", leading("1x90")+ofPod("b", leading("1x90")+paused("0x90")), minutes(5, 89), "2 replicas"),
		short("KopfSeveralActiveReplicas", "an update", leading("1x90")+ofPod("b", leading("_x9 1x4 stale")+paused("0x90"))),
		below("KopfSeveralActiveReplicas", "one is paused", leading("1x90")+ofPod("b", leading("1x90")+paused("1x90"))),
		below("KopfSeveralActiveReplicas", "two share the objects", leading("1x90")+ofPod("b", leading("1x90")+paused("0x90"))+metric("kopf_shards_configured", "", "16x90")),
		on("KopfShardsUnheld", "no replica takes one", unheld("0x10 30+60x80")+ofPod("b", unheld("0x10 30+60x80")), minutes(13, 89), "2m 30s"),
		short("KopfShardsUnheld", "a killed replica with a long lease", unheld("0x10 80 0x80")+ofPod("b", unheld("0x10 80 0x80"))),
		below("KopfShardsUnheld", "only one that is cut off sees none", unheld("0x10 30+60x80")+ofPod("b", unheld("0x90"))),
		on("KopfShardsOverdue", "a handler does not return", ownShards("overdue", "0x10 2x80"), minutes(16, 89), "2 shards"),
		on("KopfShardsOverdue", "a handler goes on without the lease", ownShards("lost", "0x10 1x80"), minutes(16, 89), "(lost)"),
		short("KopfShardsOverdue", "it returns late", ownShards("overdue", "0x10 1x4 0x76")),
		below("KopfShardsOverdue", "shards move all the time", ownShards("draining", "4x90")),
		on("KopfReplicaWithoutShards", "it cannot join", joined("0x90")+assigned("0x90")+ownShards("held", "0x90"), minutes(10, 89), "mine"),
		on("KopfReplicaWithoutShards", "another one keeps them", joined("1x90")+assigned("4x90")+ownShards("held", "0x20 4x9 0x60"), append(minutes(10, 20), minutes(41, 89)...), "mine"),
		short("KopfReplicaWithoutShards", "a start", joined("0x9 1x81")+assigned("0x9 4x81")+ownShards("held", "0x9 4x81")),
		below("KopfReplicaWithoutShards", "more replicas than shards", joined("1x90")+assigned("0x90")+ownShards("held", "0x90")),
		on("KopfShardsLost", "often", metric("kopf_shard_moves_total", `move="lost"`, "0+1x90"), minutes(16, 89), "mine"),
		short("KopfShardsLost", "once", metric("kopf_shard_moves_total", `move="lost"`, "0x9 4x80")),
		below("KopfShardsLost", "they are given", metric("kopf_shard_moves_total", `move="given"`, "0+1x90")),
		on("KopfNotReady", "a list fails", metric("kopf_ready", "", "0x90"), minutes(10, 89), "mine"),
		short("KopfNotReady", "a slow start", metric("kopf_ready", "", "0x9 1x80")),
		on("KopfWorkersExhausted", "all", metric("kopf_workers_busy", "", "5x90"), minutes(10, 89), "mine"),
		short("KopfWorkersExhausted", "for moments", metric("kopf_workers_busy", "", "5x9 1 5x9 1 5x9 1x60")),
		below("KopfWorkersExhausted", "all but one", metric("kopf_workers_busy", "", "4x90")),
		on("KopfObjectsWait", "long", metric("kopf_queue_oldest_seconds", "", "100x90"), minutes(5, 89), "1m 40s"),
		short("KopfObjectsWait", "for some minutes", metric("kopf_queue_oldest_seconds", "", "100x4 1x85")),
		below("KopfObjectsWait", "a minute", metric("kopf_queue_oldest_seconds", "", "60x90")),
		on("KopfRequestsWait", "long", waitingRequests("0x9 50x80"), minutes(24, 89), "the operator mine"),
		short("KopfRequestsWait", "a burst of twelve minutes", waitingRequests("0x9 50x12 0x67")),
		below("KopfRequestsWait", "with moments without any", waitingRequests("0 50x8 0 50x8 0 50x8 0 50x8 0 50x8 0 50x8 0 50x8 0 50x8 0")),
		on("KopfWatchFails", "one", watches("failing", "0x10 1x80"), minutes(16, 89), "changes of kex: 1"),
		short("KopfWatchFails", "until the API server is back", watches("failing", "0x10 1x4 0x75")),
		below("KopfWatchFails", "a long list", watches("listing", "1x90")),
		on("KopfWatchesRestart", "three a minute", restarts("0+3x90"), minutes(21, 89), "kex"),
		short("KopfWatchesRestart", "a bad moment", restarts("0 8 16x88")),
		below("KopfWatchesRestart", "one a minute", restarts("0+1x90")),
		on("KopfWritesRejected", "the very first rejection", writes("rejected", "0x30 1x60"), minutes(31, 44), "kex"),
		on("KopfWritesRejected", "of an operator that has just begun", writes("rejected", "_x30 1x60"), minutes(30, 44), "kex"),
		below("KopfWritesRejected", "no answer", writes("failed", "0+1x90")),
		on("KopfWriteConflicts", "two a second", writes("conflict", "0+120x90"), minutes(23, 89), "kex"),
		short("KopfWriteConflicts", "for ten minutes", writes("conflict", "0+120x10 1200x79")),
		below("KopfWriteConflicts", "almost one a second", writes("conflict", "0+59x90")),
		on("KopfReconcileErrors", "some", metric("kopf_object_errors_total", `resource="kex"`, "0+1x90"), minutes(16, 89), "kex"),
		short("KopfReconcileErrors", "a single one", metric("kopf_object_errors_total", `resource="kex"`, "0x9 1x80")),
		on("KopfForbidden", "the very first refusal", forbidden("ns", "0x30 1x60"), minutes(31, 44), ""),
		on("KopfForbidden", "a series that begins with it", forbidden("ns", "_x30 1x60"), minutes(30, 44), ""),
		below("KopfForbidden", "of another program", forbidden("other", "0x30 1x60")),
		on("KopfEventsLost", "many", events("dropped", "0x10 100x80"), minutes(11, 69), "dropped"),
		below("KopfEventsLost", "nine an hour", events("dropped", "0x10 9x80")),
		below("KopfEventsLost", "many are suppressed", events("suppressed", "0+100x90")),
	}
}

func ofHandlers() []scenario {
	longest := func(values string) string { return metric("kopf_calls_longest_seconds", "", values) }
	waiting := func(values string) string { return metric("kopf_calls_waiting", "", values) }
	return []scenario{
		on("KopfHandlersFail", "the very first failure", attempts("failed", "0x30 1x60"), minutes(31, 44), "handler fn of kex"),
		on("KopfHandlersFail", "a failure before the first scrape", attempts("failed", "_x30 1x60"), minutes(30, 44), "handler fn of kex"),
		on("KopfHandlersFail", "the only scrape begins with it", attempts("failed", "1x90"), minutes(0, 14), "handler fn of kex"),
		on("KopfHandlersFail", "in a process that replaces another", attempts("failed", "3x30 0x9 1x50"), append(minutes(0, 14), minutes(41, 54)...), ""),
		below("KopfHandlersFail", "it is retried", attempts("retried", "0+1x90")),
		on("KopfHandlersRetry", "most fail", attempts("retried", "0+10x90"), minutes(16, 89), "handler fn"),
		short("KopfHandlersRetry", "for some minutes", attempts("retried", "0+10x5 50x84")),
		below("KopfHandlersRetry", "almost half of them fail", attempts("retried", "0+4x90")),
		on("KopfHandlerHangs", "an hour", longest("0+60x90"), minutes(31, 89), "31m 0s"),
		below("KopfHandlerHangs", "half an hour", longest("0+60x30 0x59")),
		on("KopfHandlersWait", "always", waiting("1x90"), minutes(15, 89), "mine"),
		short("KopfHandlersWait", "for some minutes", waiting("0x10 3x14 0x64")),
		on("KopfObjectsHeld", "one", held("0x10 1x80"), minutes(26, 89), "1 objects of kex"),
		short("KopfObjectsHeld", "for some minutes", held("0x10 1x14 0x64")),
		on("KopfRolloutStopped", "one", rollout("failed", "0x10 1x80"), minutes(26, 89), "revision 2"),
		short("KopfRolloutStopped", "until it is corrected", rollout("failed", "0x10 1x14 0x64")),
		below("KopfRolloutStopped", "many wait", rollout("waiting", "50x90")),
		on("KopfDaemonsAbandoned", "one", daemons("abandoned", "0x10 1x80"), minutes(26, 89), "mine"),
		short("KopfDaemonsAbandoned", "it stops late", daemons("abandoned", "0x10 1x14 0x64")),
		below("KopfDaemonsAbandoned", "many run", daemons("running", "50x90")),
	}
}

func ofAdmission() []scenario {
	return []scenario{
		on("KopfAdmissionFails", "the very first failure", reviews("failed", "0x30 1x60"), minutes(31, 44), "handler check"),
		on("KopfAdmissionFails", "a series that begins with it", reviews("failed", "_x30 1x60"), minutes(30, 44), "handler check"),
		below("KopfAdmissionFails", "it rejects requests", reviews("rejected", "0+5x90")),
		on("KopfAdmissionNotAnswered", "the very first", refusals("404", "0x30 1x60"), minutes(31, 44), "status 404"),
		on("KopfAdmissionNotAnswered", "never ready", refusals("503", "0+20x90"), minutes(5, 89), "status 503"),
		below("KopfAdmissionNotAnswered", "a start", refusals("503", "0x30 9x60")),
		below("KopfAdmissionNotAnswered", "five a minute are too early", refusals("503", "0+5x90")),
		on("KopfAdmissionSlow", "all", calls("0x90", "0x90"), minutes(16, 89), "check"),
		short("KopfAdmissionSlow", "for a minute", calls("0 0 5+5x88", "0 0 5+5x88")),
		below("KopfAdmissionSlow", "almost 2.5 seconds", calls("0x90", "0+5x90")),
		on("KopfConversionsFail", "the very first failure", conversions("failed", "0x30 1x60"), minutes(31, 44), "Objects of sites cannot be converted from v1alpha1 to v1"),
		on("KopfConversionsFail", "a series that begins with it", conversions("failed", "_x30 1x60"), minutes(30, 44), "cannot be converted"),
		below("KopfConversionsFail", "objects are converted", conversions("converted", "0+5x90")),
		on("KopfCertificateExpires", "in six days", expiry("518400x90"), minutes(60, 89), "5d 23h 0m 0s"),
		short("KopfCertificateExpires", "it is replaced", expiry("518400x58 2592000x31")),
		below("KopfCertificateExpires", "in seven days and a minute", expiry("610200x90")),
	}
}
