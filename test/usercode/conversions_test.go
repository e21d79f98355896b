package usercode

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/settings"
)

func unconverted(context.Context, *kopf.Conversion) error { return nil }

// conversionSites are the places where the operator calls code of users for a conversion.
var conversionSites = map[string]func(r *kopf.Registry, c *culprit){
	"conversion": func(r *kopf.Registry, c *culprit) {
		r.OnConvert(examples, "v1beta1", "v1", func(ctx context.Context, o *kopf.Conversion) error { return c.do(ctx, o.Object().GetName()) })
	},
	"error of a conversion": func(r *kopf.Registry, c *culprit) {
		r.OnConvert(examples, "v1beta1", "v1", func(_ context.Context, o *kopf.Conversion) error {
			if o.Object().GetName() == "bad" {
				return failure{c, "bad"}
			}
			return nil
		})
	},
}

// Code that misbehaves for one object fails only the requests for that.
func TestConversionsGoOn(t *testing.T) {
	for name, declare := range conversionSites {
		for _, how := range []misbehavior{panics, exits, waits, blocks} {
			t.Run(name+" "+string(how), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { convert(t, declare, newCulprit(how)) })
			})
		}
	}
}

func convert(t *testing.T, declare func(*kopf.Registry, *culprit), c *culprit) {
	t.Helper()
	var reviews http.Handler
	b := newBench(t, func() *kopf.Registry {
		r := kopf.NewRegistry()
		r.OnCreate(claims, nothing, kopf.ID("other"))
		r.OnConvert(examples, "v1", "v1beta1", unconverted)
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
	b.id = c.id
	defer func() {
		c.release()
		time.Sleep(time.Hour)
		b.expectNoGoroutines()
	}()
	b.start()
	c.misbehaveFor("bad")
	bad := make(chan metav1.Status, 1)
	began := time.Now()
	go func() { bad <- b.convert(reviews, "bad") }()
	synctest.Wait()
	if answer := b.convert(reviews, "one", "two"); answer.Status != metav1.StatusSuccess {
		t.Errorf("the conversion of others is answered with %v", answer)
	}
	b.create(claim, "other")
	b.advance(time.Second)
	if b.get(claim, "other").GetAnnotations()[baseAnnotation] == "" {
		t.Error("the other object is not handled")
	}
	b.advance(time.Minute)
	select {
	case answer := <-bad:
		if answer.Status != metav1.StatusFailure || !strings.Contains(answer.Message, "default/bad") {
			t.Errorf("got %v", answer)
		}
	default:
		t.Errorf("the API server has no answer after %s", time.Since(began))
	}
	if lines := len(b.log.about(`"error"=`, "The conversion failed")); lines != 1 {
		t.Errorf("%d lines in the log say so", lines)
	}
	if took, err := b.stop(); err != nil || took > 10*time.Second {
		t.Errorf("the operator stopped after %s: %v", took, err)
	}
	if c.count("bad") != 1 {
		t.Errorf("the code has misbehaved %d times", c.count("bad"))
	}
}

// convert sends a conversion review of objects, and returns the result.
func (b *bench) convert(reviews http.Handler, names ...string) metav1.Status {
	b.Helper()
	request := &apiextensionsv1.ConversionRequest{UID: "1", DesiredAPIVersion: "kopf.dev/v1"}
	for _, name := range names {
		object := b.object(example, name)
		object.SetAPIVersion("kopf.dev/v1beta1")
		raw, err := json.Marshal(object)
		if err != nil {
			b.Error(err)
		}
		request.Objects = append(request.Objects, runtime.RawExtension{Raw: raw})
	}
	text, err := json.Marshal(&apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "ConversionReview"}, Request: request,
	})
	if err != nil {
		b.Error(err)
	}
	answer := httptest.NewRecorder()
	reviews.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/convert/kopfexamples.kopf.dev", bytes.NewReader(text)))
	var review apiextensionsv1.ConversionReview
	if err := json.Unmarshal(answer.Body.Bytes(), &review); err != nil || review.Response == nil {
		return metav1.Status{Message: fmt.Sprint(answer.Code, answer.Body, err)}
	}
	return review.Response.Result
}
