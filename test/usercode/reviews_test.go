package usercode

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/settings"
)

func accept(context.Context, *kopf.Admission) error { return nil }

// reviewSites are the places where the operator calls code of users for a review.
var reviewSites = map[string]func(r *kopf.Registry, c *culprit){
	"validate": func(r *kopf.Registry, c *culprit) {
		r.OnValidate(examples, func(ctx context.Context, o *kopf.Admission) error { return c.do(ctx, o.Name()) }, kopf.ID("site"))
	},
	"mutate": func(r *kopf.Registry, c *culprit) {
		r.OnMutate(examples, func(ctx context.Context, o *kopf.Admission) error { return c.do(ctx, o.Name()) }, kopf.ID("site"))
	},
	"filter of a review": func(r *kopf.Registry, c *culprit) { r.OnValidate(examples, accept, kopf.ID("site"), c.when()) },
	"transformation of a review": func(r *kopf.Registry, c *culprit) {
		r.OnMutate(examples, func(_ context.Context, o *kopf.Admission) error {
			name := o.Name()
			o.Patch().Apply(func(*unstructured.Unstructured) error { c.ask(name); return nil })
			return nil
		}, kopf.ID("site"))
	},
	"error of a review": func(r *kopf.Registry, c *culprit) {
		r.OnValidate(examples, func(_ context.Context, o *kopf.Admission) error {
			if o.Name() == "bad" {
				return failure{c, o.Name()}
			}
			return nil
		}, kopf.ID("site"))
	},
	"decoding for a review": func(r *kopf.Registry, _ *culprit) {
		kopf.For[*picky](r).OnValidate(func(context.Context, *picky, *kopf.Admission) error { return nil }, kopf.ID("site"))
	},
}

// Code that misbehaves for one review rejects only that.
func TestReviewsGoOn(t *testing.T) {
	for name, declare := range reviewSites {
		for _, how := range []misbehavior{panics, exits, waits, blocks} {
			t.Run(name+" "+string(how), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { review(t, declare, newCulprit(how)) })
			})
		}
	}
}

func review(t *testing.T, declare func(*kopf.Registry, *culprit), c *culprit) {
	t.Helper()
	var reviews http.Handler
	b := newBench(t, func() *kopf.Registry {
		r := kopf.NewRegistry()
		r.OnCreate(claims, nothing, kopf.ID("other"))
		declare(r, c)
		return r
	}, func(s *kopf.Settings) {
		s.Admission.Server = settings.AdmissionServerFunc(func(ctx context.Context, e settings.AdmissionEndpoint) error {
			reviews = e.Handler
			err := e.Publish(ctx, admissionregistrationv1.WebhookClientConfig{URL: new("https://localhost")})
			<-ctx.Done()
			return err
		})
	})
	b.id, b.scheme = c.id, scheme(true)
	defer func() {
		c.release()
		time.Sleep(time.Hour)
		b.expectNoGoroutines()
	}()
	b.start()
	c.misbehaveFor("bad")
	bad := make(chan *admissionv1.AdmissionResponse, 1)
	go func() { bad <- b.send(reviews, "bad") }()
	synctest.Wait()
	for _, name := range []string{"one", "two"} {
		if answer := b.send(reviews, name); !answer.Allowed {
			t.Errorf("the review of %s is answered with %v", name, answer)
		}
	}
	b.create(claim, "other")
	b.advance(time.Second)
	if b.get(claim, "other").GetAnnotations()[baseAnnotation] == "" {
		t.Error("the other object is not handled")
	}
	if c.how == panics || c.how == exits {
		if answer := <-bad; answer.Allowed || answer.Result == nil || answer.Result.Code != http.StatusInternalServerError {
			t.Errorf("got %v", answer)
		}
		if lines := len(b.log.about(`"error"=`, "site")); lines != 1 {
			t.Errorf("%d lines in the log say so", lines)
		}
	}
	if took, err := b.stop(); err != nil || took > 10*time.Second {
		t.Errorf("the operator stopped after %s: %v", took, err)
	}
	if c.count("bad") != 1 {
		t.Errorf("the code has misbehaved %d times", c.count("bad"))
	}
}

// send sends the review of a creation, and returns the answer.
func (b *bench) send(reviews http.Handler, name string) *admissionv1.AdmissionResponse {
	b.Helper()
	raw, err := json.Marshal(b.object(example, name))
	if err != nil {
		b.Error(err)
	}
	resource := metav1.GroupVersionResource{Group: "kopf.dev", Version: "v1", Resource: "kopfexamples"}
	text, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "1", Operation: admissionv1.Create, Namespace: "default", Name: name, Object: runtime.RawExtension{Raw: raw},
			Resource: resource, RequestResource: &resource, Kind: metav1.GroupVersionKind{Group: "kopf.dev", Version: "v1", Kind: example},
		},
	})
	if err != nil {
		b.Error(err)
	}
	answer := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodPost, "/site", bytes.NewReader(text))
	request.Header.Set("Content-Type", "application/json")
	reviews.ServeHTTP(answer, request)
	var response admissionv1.AdmissionReview
	if err := json.Unmarshal(answer.Body.Bytes(), &response); err != nil || response.Response == nil {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Code: int32(answer.Code), Message: fmt.Sprint(answer.Body, err)}} //nolint:gosec // a status
	}
	return response.Response
}
