package kopf_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// The version v1alpha1 has one text, "web:8080". The version v1 has two fields.
func ExampleOnConvert() {
	sites := kopf.Resource("example.com", "sites")
	kopf.OnConvert(sites, "v1alpha1", "v1", func(_ context.Context, c *kopf.Conversion) error {
		site := c.Object().Object
		address, _, err := unstructured.NestedString(site, "spec", "address")
		if err != nil {
			return err
		}
		host, port, found := strings.Cut(address, ":")
		number, err := strconv.ParseInt(port, 10, 32)
		if !found || err != nil {
			return fmt.Errorf("spec.address is %q, and not HOST:PORT", address)
		}
		site["spec"] = map[string]any{"host": host, "port": number}
		return nil
	})
	kopf.OnConvert(sites, "v1", "v1alpha1", func(_ context.Context, c *kopf.Conversion) error {
		site := c.Object().Object
		host, _, err := unstructured.NestedString(site, "spec", "host")
		if err != nil {
			return err
		}
		port, _, err := unstructured.NestedInt64(site, "spec", "port")
		site["spec"] = map[string]any{"address": fmt.Sprintf("%s:%d", host, port)}
		return err
	})
}

// siteV1 and siteV1alpha1 are two versions of one kind, as kubebuilder projects have them.
type (
	siteV1 struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`

		Spec struct {
			Host string `json:"host"`
			Port int    `json:"port"`
		} `json:"spec"`
	}
	siteV1alpha1 struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`

		Spec struct {
			Address string `json:"address"`
		} `json:"spec"`
	}
)

// DeepCopyObject copies the object. Controller-gen makes it in a project.
func (s *siteV1) DeepCopyObject() runtime.Object {
	other := *s
	s.DeepCopyInto(&other.ObjectMeta)
	return &other
}

// DeepCopyObject copies the object. Controller-gen makes it in a project.
func (s *siteV1alpha1) DeepCopyObject() runtime.Object {
	other := *s
	s.DeepCopyInto(&other.ObjectMeta)
	return &other
}

// The functions get the objects as Go types. The metadata is in the new object already.
func ExampleOnConvertOf() {
	registry := kopf.NewRegistry()
	kopf.OnConvertOf(registry, func(_ context.Context, from *siteV1alpha1, to *siteV1) error {
		host, port, _ := strings.Cut(from.Spec.Address, ":")
		number, err := strconv.Atoi(port)
		if err != nil {
			return fmt.Errorf("spec.address is %q, and not HOST:PORT", from.Spec.Address)
		}
		to.Spec.Host = host
		to.Spec.Port = number
		return nil
	})
	kopf.OnConvertOf(registry, func(_ context.Context, from *siteV1, to *siteV1alpha1) error {
		to.Spec.Address = fmt.Sprintf("%s:%d", from.Spec.Host, from.Spec.Port)
		return nil
	})
}

// Hub makes siteV1 the version that all others are converted to and from.
func (*siteV1) Hub() {}

// ConvertTo converts the object to the hub.
func (s *siteV1alpha1) ConvertTo(hub conversion.Hub) error {
	to, ok := hub.(*siteV1)
	if !ok {
		return fmt.Errorf("%T is not the hub", hub)
	}
	_, err := fmt.Sscanf(strings.ReplaceAll(s.Spec.Address, ":", " "), "%s %d", &to.Spec.Host, &to.Spec.Port)
	to.ObjectMeta = s.ObjectMeta
	return err
}

// ConvertFrom converts the hub to the object.
func (s *siteV1alpha1) ConvertFrom(hub conversion.Hub) error {
	from, ok := hub.(*siteV1)
	if !ok {
		return fmt.Errorf("%T is not the hub", hub)
	}
	s.ObjectMeta = from.ObjectMeta
	s.Spec.Address = fmt.Sprintf("%s:%d", from.Spec.Host, from.Spec.Port)
	return nil
}

// A kubebuilder project has the conversions as methods of its types. The scheme of the operator has the types of all
// versions.
func ExampleOnConvertHub() {
	registry := kopf.NewRegistry()
	kopf.OnConvertHub[*siteV1](registry)
}
