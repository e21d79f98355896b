package usercode

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/login"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/settings"
)

// self is the name of the operator for code that is not called for an object.
const self = "operator"

// shutdownTimeout is that of operators whose own functions misbehave.
const shutdownTimeout = time.Minute

// ownSite is a place where the operator calls code of users for itself.
type ownSite struct {
	// declare declares the code. It can change the bench before the operator is created.
	declare func(b *bench, r *kopf.Registry, c *culprit)
	// essential is set if nothing can be handled without the code.
	essential bool
	// fatal is set if the operator ends when the code panics.
	fatal bool
	// limit is how long the operator may take to stop while the code blocks.
	limit time.Duration
}

var ownSites = map[string]ownSite{
	"startup": {essential: true, limit: shutdownTimeout, declare: func(_ *bench, r *kopf.Registry, c *culprit) {
		r.OnStartup(func(ctx context.Context, _ *kopf.Startup) error { return c.do(ctx, self) }, kopf.ID("site"))
	}},
	"cleanup": {limit: shutdownTimeout + time.Second, declare: func(_ *bench, r *kopf.Registry, c *culprit) {
		r.OnCleanup(func(ctx context.Context, _ *kopf.Activity) error { return c.do(ctx, self) }, kopf.ID("site"))
	}},
	"login": {essential: true, declare: func(b *bench, r *kopf.Registry, c *culprit) {
		b.noConfig = true
		r.OnLogin(func(ctx context.Context, _ *kopf.Activity) (*login.Connection, error) {
			return &login.Connection{Config: b.config}, c.do(ctx, self)
		}, kopf.ID("site"))
	}},
	"connect": {essential: true, fatal: true, limit: shutdownTimeout, declare: func(b *bench, _ *kopf.Registry, c *culprit) {
		b.noConfig = true
		b.connect = func(ctx context.Context) (*rest.Config, error) { return b.config, c.do(ctx, self) }
	}},
	"selector": {declare: func(_ *bench, r *kopf.Registry, c *culprit) {
		r.OnCreate(selector.Func(func(r selector.Resource) bool {
			c.ask(self)
			return r.Plural == "kopfexamples"
		}), nothing, kopf.ID("site"))
	}},
	"admission server": {fatal: true, limit: 15 * time.Second, declare: func(b *bench, r *kopf.Registry, c *culprit) {
		r.OnValidate(examples, func(context.Context, *kopf.Admission) error { return nil }, kopf.ID("site"))
		b.settings = append(b.settings, func(s *kopf.Settings) {
			s.Admission.Server = settings.AdmissionServerFunc(func(ctx context.Context, e settings.AdmissionEndpoint) error {
				if err := e.Publish(ctx, admissionregistrationv1.WebhookClientConfig{URL: new("https://localhost")}); err != nil {
					return err
				}
				return c.do(ctx, self)
			})
		})
	}},
}

// Code that misbehaves for the operator itself does not end the process, and does not delay the end of the operator
// longer than documented.
func TestOperatorGoesOn(t *testing.T) {
	for name, s := range ownSites {
		for _, how := range []misbehavior{panics, exits, waits, blocks} {
			t.Run(name+" "+string(how), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { operate(t, s, newCulprit(how)) })
			})
		}
	}
}

// operate runs an operator whose own code misbehaves, and stops it.
func operate(t *testing.T, s ownSite, c *culprit) {
	t.Helper()
	var b *bench
	b = newBench(t, func() *kopf.Registry {
		r := kopf.NewRegistry()
		r.OnCreate(claims, nothing, kopf.ID("other"))
		s.declare(b, r, c)
		return r
	}, func(s *kopf.Settings) { s.Execution.ShutdownTimeout = shutdownTimeout })
	defer func() {
		c.release()
		time.Sleep(time.Hour)
		b.expectNoGoroutines()
	}()
	c.misbehaveFor(self)
	b.begin()
	b.create(claim, "one")
	b.advance(2 * time.Minute)
	if c.how == waits || c.how == blocks || !s.fatal {
		if handled := b.get(claim, "one").GetAnnotations()[baseAnnotation] != ""; handled == s.essential {
			t.Errorf("the other object is handled: %t", handled)
		}
		took, err := b.stop()
		if took > max(s.limit, shutdownTimeout) || c.how == blocks && took > s.limit {
			t.Errorf("the operator stopped after %s: %v", took, err)
		}
	} else if err := <-b.ended; err == nil || !strings.Contains(err.Error(), misbehaviorIn(c.how)) {
		t.Errorf("the operator has ended with %v", err)
	}
	if c.count(self) == 0 {
		t.Error("the code was not called")
	}
	if lines := len(b.log.about(`"error"=`, misbehaviorIn(c.how))); !s.fatal && (c.how == panics || c.how == exits) && (lines == 0 || lines > c.count(self)+1) {
		t.Errorf("%d lines in the log say what has happened %d times", lines, c.count(self))
	}
}

// misbehaviorIn returns a part of an error about misbehavior.
func misbehaviorIn(how misbehavior) string {
	if how == exits {
		return "runtime.Goexit"
	}
	return "panic: misbehavior for " + self
}
