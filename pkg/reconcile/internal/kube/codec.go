package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// codec decodes the API server's JSON into snapshots, and its failures into
// metav1.Status. It never encodes: the engine writes patches as bytes.
type codec struct {
	share *Share // of a watch; nil: all objects
}

var (
	_ runtime.NegotiatedSerializer = codec{}
	_ runtime.Serializer           = codec{}
)

// SupportedMediaTypes returns JSON only.
func (c codec) SupportedMediaTypes() []runtime.SerializerInfo {
	return []runtime.SerializerInfo{{
		MediaType: runtime.ContentTypeJSON, MediaTypeType: "application", MediaTypeSubType: "json",
		EncodesAsText: true, Serializer: c,
		StreamSerializer: &runtime.StreamSerializerInfo{EncodesAsText: true, Serializer: watchDecoder{c}, Framer: watchDecoder{c}},
	}}
}

// EncoderForVersion returns the codec itself, because client-go asks for an encoder
// before it knows that there is nothing to encode.
func (c codec) EncoderForVersion(runtime.Encoder, runtime.GroupVersioner) runtime.Encoder { return c }

// DecoderToVersion returns the codec itself: objects are not converted between
// versions.
func (c codec) DecoderToVersion(runtime.Decoder, runtime.GroupVersioner) runtime.Decoder { return c }

// Identifier distinguishes serializers.
func (c codec) Identifier() runtime.Identifier { return "kopf-snapshot" }

// Encode returns an error.
func (c codec) Encode(runtime.Object, io.Writer) error {
	return errors.New("the snapshot codec does not encode")
}

// Decode returns a snapshot, or a status if the request failed.
func (c codec) Decode(data []byte, _ *schema.GroupVersionKind, _ runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	header := gjson.GetManyBytes(data, "apiVersion", "kind")
	gvk := schema.FromAPIVersionAndKind(header[0].Str, header[1].Str)
	if header[0].Str == "v1" && header[1].Str == "Status" {
		status := &metav1.Status{}
		if err := json.Unmarshal(data, status); err != nil {
			return nil, nil, fmt.Errorf("cannot decode a status of the API server: %w", err)
		}
		return status, &gvk, nil
	}
	snapshot, err := object.ParseSnapshot(data)
	if err != nil {
		return nil, nil, err
	}
	return snapshot, &gvk, nil
}
