package reconcile

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/internal/plural"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/revision"
)

// startRollouts begins the rollouts of a resource with the objects that are known, and logs how
// many objects must be handled again.
func (e *Engine) startRollouts(ctx context.Context, r *resource) {
	if len(r.Revised) == 0 {
		return
	}
	objects := slices.DeleteFunc(r.Objects(), e.isOthers)
	reportCensus(e.Logger, e.revisions.Start(r.Name, r.Revised, e.subjectsOf(ctx, r, objects)))
}

// joinRollouts adds the objects of a shard to the rollouts, before any of them is handled: one that has failed stops the
// others.
func (e *Engine) joinRollouts(ctx context.Context, t *tenure) {
	for _, r := range e.resources.all() {
		if len(r.Revised) == 0 {
			continue
		}
		reportCensus(e.Logger.WithValues("shard", t.shard), e.revisions.Join(r.Name, r.Revised, e.subjectsOf(ctx, r, e.objectsIn(r, t.shard))))
	}
}

// reportCensus logs how many objects must be handled again.
func reportCensus(logger logr.Logger, all []revision.Census) {
	for _, census := range all {
		log := logger.WithValues("resource", census.Resource, "handler", census.ID, "revision", census.Revision)
		if census.Others > 0 {
			log.Info("Objects were handled under another revision of the handler: they are handled again.", "objects", census.Others)
		}
		if census.Never > 0 {
			log.Info("Objects were never handled under a revision of the handler: they are handled again. Declare the handler with kopf.Baseline() to adopt them as they are.", "objects", census.Never)
		}
	}
}

// subjectsOf returns objects of a resource that are known, as they are stored. A storage outside of the cluster is
// asked about many of them at the same time, because it can be slow, and is code of users.
func (e *Engine) subjectsOf(ctx context.Context, r *resource, objects []*object.Snapshot) []revision.Subject {
	found := make([]revision.Subject, len(objects))
	known := make([]bool, len(objects)) // otherwise, its pass reports the error
	read := func(i int) (err error) {
		found[i], err = e.subjectOf(ctx, r, objects[i])
		return err
	}
	if e.storesElsewhere {
		var all errgroup.Group
		all.SetLimit(e.Settings.Execution.Workers)
		for i := range objects {
			all.Go(func() error {
				known[i] = handler.WithRecover(func() error { return read(i) }) == nil
				return nil
			})
		}
		_ = all.Wait()
	} else {
		for i := range objects {
			known[i] = read(i) == nil
		}
	}
	var subjects []revision.Subject
	for i, subject := range found {
		if known[i] {
			subjects = append(subjects, subject)
		}
	}
	return subjects
}

// subjectOf returns an object as it is stored, before any pass looks at it.
func (e *Engine) subjectOf(ctx context.Context, r *resource, snapshot *object.Snapshot) (revision.Subject, error) {
	body := snapshot.Body()
	key := r.Key(snapshot)
	silent := e.reporter(key)
	s := revision.Subject{Key: key, Cause: &handler.Cause{Reason: cause.NoOp, CallContext: handler.CallContext{
		Body: body, Resource: &r.Resource.Resource, Logger: silent.Log, Client: e.Client,
		Memo: func() *memo.Values { return e.objects.of(key).memosOf(body.UID(), e.Memos) },
	}}}
	var err error
	_, s.Cause.Old, err = e.records.Base(ctx, body, silent)
	if err != nil {
		return s, err
	}
	s.Cause.New = e.records.Essence(body, r.Fields)
	s.Progress, err = e.records.Progress(ctx, body, r.IDs, silent)
	return s, err
}

// observeRevisions reports to the rollouts a version of the object.
func (t *target) observeRevisions(c *cycle, body *object.Body) {
	if len(t.resource.Revised) == 0 {
		return
	}
	s := c.Subject(t.key)
	now := c.Cause
	now.CallContext.Body = body
	s.Cause = &now
	if body != c.CallContext.Body {
		now.Old = c.New // it is handled now
	}
	t.engine.revisions.Observe(t.resource.Revised, s)
}

// reportRollout reports the point that a rollout has come to.
func (e *Engine) reportRollout(r revision.Report) {
	log := e.Logger.WithValues("resource", r.Resource, "handler", r.ID, "revision", r.Revision,
		"done", r.Done, "failed", r.Failed, "running", r.Running, "waiting", r.Waiting)
	switch r.Kind {
	case revision.Began:
		log.Info("The rollout begins a step.", "step", r.Step, "limit", r.Limit)
	case revision.Continued:
		log.Info("The rollout continues: no object has failed anymore.")
	case revision.Finished:
		if r.Failed == 0 {
			log.Info("The rollout has ended.")
			return
		}
		e.objectLogger(r.Object).Error(nil, failedRollout(r, "has ended", ""), "handler", r.ID, "revision", r.Revision)
	case revision.Stopped:
		message := failedRollout(r, "is stopped", ", and "+plural.Of(r.Waiting, "waits", "wait"))
		e.objectLogger(r.Object).Error(nil, message, "handler", r.ID, "revision", r.Revision)
		if of := e.resources.get(r.Resource); of != nil {
			if snapshot := of.Cached(r.Object.NamespacedName); snapshot != nil {
				e.reporter(r.Object).Event(snapshot.Body(), report.Warning, "RolloutStopped", message)
			}
		}
	}
}

// failedRollout says how many objects have failed, and what to do.
func failedRollout(r revision.Report, state, others string) string {
	return fmt.Sprintf("The rollout of revision %s of handler %s %s: %d of %s %s failed%s. "+
		"Correct the objects, request to rerun the handler for them, or deploy another revision.", r.Revision, r.ID, state, r.Failed,
		plural.Of(r.Total(), "object", "objects"), plural.Word(r.Failed, "has", "have"), others)
}
