package relist

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// source is a Source with a server that answers with a watch or an error.
type source struct {
	*Source
	t           *testing.T
	answer      error
	objects     []metav1.PartialObjectMetadata // of the API server, at version 9
	unlisted    error                          // the answer to a list
	current     *watch.FakeWatcher
	requested   []metav1.ListOptions
	interrupted []error
}

func newSource(t *testing.T) *source {
	s := &source{t: t}
	s.Source = &Source{
		Timeout:     5 * time.Minute,
		Interrupted: func(reason error) { s.interrupted = append(s.interrupted, reason) },
		ListFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
			if options.ResourceVersion != "9" || options.ResourceVersionMatch != metav1.ResourceVersionMatchExact ||
				options.FieldSelector != "metadata.name=kex,metadata.namespace=default" {
				t.Errorf("the objects are listed with %+v", options)
			}
			return &metav1.PartialObjectMetadataList{Items: s.objects}, s.unlisted
		},
		WatchFunc: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return Limit(ctx, 3*time.Minute, func(context.Context) (watch.Interface, error) {
				s.requested = append(s.requested, options)
				s.current = watch.NewFake()
				return s.current, s.answer
			})
		},
	}
	return s
}

// read reads the watch, as a reflector.
func (s *source) read() {
	started := s.last
	go func() {
		for range started.ResultChan() {
		}
	}()
}

// list lists by a watch.
func (s *source) list() {
	s.t.Helper()
	yes := true
	started, err := s.ListWatch().WatchWithContext(s.t.Context(), metav1.ListOptions{SendInitialEvents: &yes, ResourceVersion: "7"})
	if err != nil || s.requested[len(s.requested)-1].ResourceVersion != "" {
		s.t.Fatalf("got %v, %v, %+v", started, err, s.requested)
	}
	s.read()
	s.endList()
}

// resume requests a watch that continues the last one.
func (s *source) resume() error {
	_, err := s.ListWatch().WatchWithContext(s.t.Context(), metav1.ListOptions{ResourceVersion: "12"})
	if err == nil {
		s.read()
	}
	return err
}

func TestWatchContinuesOnlyAfterItsOrdinaryEnd(t *testing.T) {
	refused := error(syscall.ECONNREFUSED)
	tests := map[string]struct {
		happens func(s *source)
		lists   bool
		reason  error // that is reported
	}{
		"the server ends it in time": {func(s *source) {
			lasting := time.Duration(*s.requested[0].TimeoutSeconds) * time.Second
			for left := lasting; left > 0; left -= time.Minute {
				time.Sleep(min(time.Minute, left))
				s.current.Action(watch.Bookmark, &metav1.PartialObjectMetadata{})
			}
			s.current.Stop()
		}, false, nil},
		"the server ends it early": {func(s *source) {
			time.Sleep(2 * time.Minute)
			s.current.Stop()
		}, true, errEarly},
		"the server ends it early, and still knows what it has shown": {func(s *source) {
			s.current.Modify(object("1", "8"))
			s.current.Modify(object("1", "9"))
			s.current.Delete(object("2", "10"))
			s.endsEarly(object("1", "9"))
		}, false, nil},
		"the server ends it early again": {func(s *source) {
			s.current.Modify(object("1", "9"))
			s.endsEarly(object("1", "9"))
			if err := s.resume(); err != nil {
				s.t.Error(err)
			}
			s.current.Stop()
		}, false, nil},
		"the server ends it early, and has another object instead": {func(s *source) {
			s.current.Modify(object("1", "9"))
			s.endsEarly(object("2", "9"))
		}, true, errEarly},
		"the server ends it early, and has another version": {func(s *source) {
			s.current.Modify(object("1", "9"))
			s.endsEarly(object("1", "7"))
		}, true, errEarly},
		"the server ends it early, and has no such object": {func(s *source) {
			s.current.Modify(object("1", "9"))
			s.endsEarly()
		}, true, errEarly},
		"the server ends it early, and does not answer": {func(s *source) {
			s.current.Modify(object("1", "9"))
			s.unlisted = refused
			s.endsEarly(object("1", "9"))
		}, true, errEarly},
		"the server ends it early, and has shown old objects only": {func(s *source) {
			s.current.Add(object("1", "9"))
			s.current.Action(watch.Bookmark, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				ResourceVersion: "12", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
			}})
			s.endsEarly(object("1", "9"))
		}, true, errEarly},
		"it is silent": {func(*source) { time.Sleep(time.Hour) }, true, errSilent},
		"it is silent, and still knows what it has shown": {func(s *source) {
			s.current.Modify(object("1", "9"))
			s.objects = append(s.objects, *object("1", "9"))
			time.Sleep(time.Hour)
		}, true, errSilent},
		"the server ends it early, and asks for patience": {func(s *source) {
			s.current.Modify(object("1", "9"))
			s.endsEarly(object("1", "9"))
			s.answer = apierrors.NewTooManyRequests("later", 1)
			if err := s.resume(); !apierrors.IsTooManyRequests(err) {
				s.t.Errorf("got %v", err)
			}
			s.answer, s.objects = nil, nil // it has been restored meanwhile
		}, true, errEarly},
		"another history was seen":            {func(s *source) { s.Interrupt() }, true, errOutdated},
		"the next request is not answered":    {func(s *source) { s.fails(refused) }, true, nil},
		"the next request is refused":         {func(s *source) { s.fails(apierrors.NewForbidden(schema.GroupResource{Resource: "kex"}, "", nil)) }, true, nil},
		"the next request is one too many":    {func(s *source) { s.fails(apierrors.NewTooManyRequests("later", 1)) }, false, nil},
		"the next request is for an old past": {func(s *source) { s.fails(apierrors.NewResourceExpired("old")) }, true, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSource(t)
				s.list()
				test.happens(s)
				synctest.Wait()
				err := s.resume()
				if test.lists != apierrors.IsResourceExpired(err) || !test.lists && err != nil {
					t.Errorf("got %v", err)
				}
				if strings.Contains(name, "early") && !test.lists && s.requested[len(s.requested)-1].ResourceVersion != "9" {
					t.Errorf("the watch continues from another version: %+v", s.requested)
				}
				if test.reason == nil && len(s.interrupted) > 0 || test.reason != nil && (len(s.interrupted) != 1 || !errors.Is(s.interrupted[0], test.reason)) {
					t.Errorf("reported %v", s.interrupted)
				}
				s.list()
				if before := len(s.requested); s.resumesAfterItsEnd() != nil || len(s.requested) != before+1 {
					t.Error("the watch does not continue after the list")
				}
			})
		})
	}
}

// object returns an object in a version.
func object(uid types.UID, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kex", UID: uid, ResourceVersion: version}}
}

// endsEarly lets the watch end early, when the API server knows these objects.
func (s *source) endsEarly(known ...*metav1.PartialObjectMetadata) {
	for _, one := range known {
		s.objects = append(s.objects, *one)
	}
	s.current.Stop()
	synctest.Wait()
}

// fails lets the watch end in time, and the next request fail.
func (s *source) fails(err error) {
	s.ends = time.Now()
	s.current.Stop()
	s.answer = err
	if got := s.resume(); got == nil || apierrors.IsTooManyRequests(err) != apierrors.IsTooManyRequests(got) || apierrors.IsTooManyRequests(err) == apierrors.IsResourceExpired(got) {
		s.t.Errorf("after %v, the reflector gets %v", err, got)
	}
	s.answer = nil
}

func (s *source) resumesAfterItsEnd() error {
	s.ends = time.Now()
	s.current.Stop()
	return s.resume()
}

// A reflector would wait after some errors, and not notice that it must stop.
func TestFailedListByAWatchIsNotRepeatedAtOnce(t *testing.T) {
	s := newSource(t)
	s.answer = syscall.ECONNREFUSED
	yes := true
	if _, err := s.ListWatch().WatchWithContext(t.Context(), metav1.ListOptions{SendInitialEvents: &yes}); err == nil || errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v", err)
	}
	if _, err := s.ListWatch().ListWithContext(t.Context(), metav1.ListOptions{}); !errors.Is(err, syscall.ECONNREFUSED) || len(s.requested) != 1 {
		t.Errorf("got %v, %d requests", err, len(s.requested))
	}
}

func TestListsThatAreOlderBelongToAnotherHistory(t *testing.T) {
	var h History
	for i, step := range []struct {
		event, list string
		another     bool
	}{
		{"", "7", false},
		{"9", "", false},
		{"8", "", false},
		{"", "9", false},
		{"", "10", false},
		{"", "9", true},
		{"", "9", false},
		{"100", "", false},
		{"", "99", true},
		{"", "nonsense", false},
	} {
		if step.event != "" {
			h.Advance(step.event)
		} else if another := h.Restart(step.list); another != step.another {
			t.Errorf("%d. %s: got %t", i+1, step.list, another)
		}
	}
}

// A list is consistent, whatever the reflector asks for, and another watch begins after it.
func TestListIsConsistentAndABeginning(t *testing.T) {
	s := newSource(t)
	var asked metav1.ListOptions
	answer := error(nil)
	s.ListFunc = func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
		asked = options
		return &metav1.PartialObjectMetadataList{}, answer
	}
	began := func() bool { return s.last == nil && s.failed == nil && s.shown == proof{} }
	for _, answer = range []error{syscall.ECONNREFUSED, nil} {
		s.last, s.failed, s.shown = watch.NewFake(), syscall.ECONNRESET, proof{version: "7"}
		_, err := s.ListWatch().ListWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "0", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, Limit: 5})
		if !errors.Is(err, answer) || asked.ResourceVersion != "" || asked.ResourceVersionMatch != "" || asked.Limit != 5 {
			t.Errorf("got %v for %+v", err, asked)
		}
		if began() != (answer == nil) {
			t.Errorf("after %v, a watch would continue as from %v, %v, %v", answer, s.last, s.failed, s.shown)
		}
	}
}

// Reflectors list in another way if the API server does not know lists by watches.
func TestUnknownListByAWatchIsFollowedByAList(t *testing.T) {
	s := newSource(t)
	s.ListFunc = func(context.Context, metav1.ListOptions) (runtime.Object, error) {
		return &metav1.PartialObjectMetadataList{}, nil
	}
	s.shown, s.Source.unlisted = proof{version: "7"}, syscall.ECONNRESET
	s.answer = apierrors.NewBadRequest("unknown")
	yes := true
	if _, err := s.ListWatch().WatchWithContext(t.Context(), metav1.ListOptions{SendInitialEvents: &yes}); !apierrors.IsBadRequest(err) || s.shown != (proof{}) {
		t.Errorf("got %v, %v", err, s.shown)
	}
	if _, err := s.ListWatch().ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestFailedListByAWatchFailsOneListOnly(t *testing.T) {
	s := newSource(t)
	s.ListFunc = func(context.Context, metav1.ListOptions) (runtime.Object, error) {
		return &metav1.PartialObjectMetadataList{}, nil
	}
	s.Source.unlisted = syscall.ECONNREFUSED
	for _, want := range []error{syscall.ECONNREFUSED, nil} {
		if _, err := s.ListWatch().ListWithContext(t.Context(), metav1.ListOptions{}); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

// Interrupt ends the watch that is running, and can be called before there is one.
func TestInterruptEndsTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(t)
		s.Interrupt()
		s.list()
		began, running := time.Now(), s.last
		s.Interrupt()
		if _, open := <-running.ResultChan(); open || time.Since(began) > 0 {
			t.Errorf("the watch has ended after %s", time.Since(began))
		}
	})
}

func TestOnlySilenceIsSilence(t *testing.T) {
	if !IsSilence(errSilent) || IsSilence(errEarly) {
		t.Error("the reasons are mixed up")
	}
}

// An interruption that the source itself is asked to make is not reported. A source without Interrupted lists, too.
func TestInterruptionsAreReportedToWhoListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(t)
		s.list()
		s.current.Stop()
		ended, end := context.WithCancel(t.Context())
		end()
		_, _ = s.ListWatch().WatchWithContext(ended, metav1.ListOptions{ResourceVersion: "12"})
		if len(s.interrupted) > 0 {
			t.Errorf("the end of the operator is reported: %v", s.interrupted)
		}
		s.Interrupted = nil
		if err := s.resume(); !apierrors.IsResourceExpired(err) {
			t.Errorf("got %v", err)
		}
	})
}

func TestPatienceIsAskedForInSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(t)
		s.list()
		began := time.Now()
		s.fails(apierrors.NewTooManyRequests("later", 7))
		if waited := time.Since(began); waited != 7*time.Second {
			t.Errorf("waited %s", waited)
		}
	})
}

// Only the last request of a source has a context that continues.
func TestNextRequestEndsTheLastOne(t *testing.T) {
	s := newSource(t)
	var contexts []context.Context
	s.WatchFunc = func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
		contexts = append(contexts, ctx)
		return watch.NewFake(), nil
	}
	for range 2 {
		if _, err := s.ListWatch().WatchWithContext(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		s.ends = time.Now()
	}
	if contexts[0].Err() == nil || contexts[1].Err() != nil {
		t.Errorf("got %v, %v", contexts[0].Err(), contexts[1].Err())
	}
}

// A watch that has another form, or a list after it, proves nothing.
func TestOnlyWatchesThatAreFollowedProveAnything(t *testing.T) {
	s := newSource(t)
	s.ends = time.Now().Add(time.Hour)
	if reason := s.interruption(); reason != nil {
		t.Errorf("without a watch, got %v", reason)
	}
	s.last = watch.NewFake()
	if reason := s.interruption(); !errors.Is(reason, errEarly) || s.lastShown() != (proof{}) {
		t.Errorf("got %v, %+v", reason, s.lastShown())
	}
}

func TestListsByWatchesAreKnownByTheirOptions(t *testing.T) {
	yes, no := true, false
	for options, want := range map[*bool]bool{&yes: true, &no: false, nil: false} {
		if got := IsList(metav1.ListOptions{SendInitialEvents: options}); got != want {
			t.Errorf("%v: got %t", options, got)
		}
	}
	for err, want := range map[error]bool{
		apierrors.NewBadRequest("unknown"): true, apierrors.NewInvalid(schema.GroupKind{}, "", nil): true, syscall.ECONNREFUSED: false,
	} {
		if got := isUnsupported(err); got != want {
			t.Errorf("%v: got %t", err, got)
		}
	}
}

// A watch that must be another one continues without a list, and without a proof.
func TestRenewedWatchesContinue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(t)
		s.Renew()
		s.list()
		s.Renew()
		synctest.Wait()
		if err := s.resume(); err != nil || len(s.interrupted) > 0 || s.requested[len(s.requested)-1].ResourceVersion != "12" {
			t.Errorf("got %v, %v, %+v", err, s.interrupted, s.requested)
		}
		s.current.Stop()
		if err := s.resume(); !apierrors.IsResourceExpired(err) {
			t.Errorf("the next end is forgiven, too: %v", err)
		}
	})
}
