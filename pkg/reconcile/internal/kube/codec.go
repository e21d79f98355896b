package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// codec decodes the API server's JSON into snapshots, and its failures into
// metav1.Status. It never encodes: the engine writes patches as bytes.
type codec struct {
	// idle is how long a watch may bring nothing; not positive: for ever.
	idle time.Duration
}

var (
	_ runtime.NegotiatedSerializer = codec{}
	_ runtime.Serializer           = codec{}
)

// SupportedMediaTypes offers JSON alone.
func (c codec) SupportedMediaTypes() []runtime.SerializerInfo {
	return []runtime.SerializerInfo{{
		MediaType: runtime.ContentTypeJSON, MediaTypeType: "application", MediaTypeSubType: "json",
		EncodesAsText: true, Serializer: c,
		StreamSerializer: &runtime.StreamSerializerInfo{EncodesAsText: true, Serializer: watchDecoder{c}, Framer: watchDecoder{c}},
	}}
}

// EncoderForVersion is asked for by client-go before it knows that there is nothing to encode.
func (c codec) EncoderForVersion(runtime.Encoder, runtime.GroupVersioner) runtime.Encoder { return c }

// DecoderToVersion converts no versions: objects are read as they are served.
func (c codec) DecoderToVersion(runtime.Decoder, runtime.GroupVersioner) runtime.Decoder { return c }

// Identifier tells serializers apart.
func (c codec) Identifier() runtime.Identifier { return "kopf-snapshot" }

// Encode refuses.
func (c codec) Encode(runtime.Object, io.Writer) error {
	return errors.New("the snapshot codec reads only")
}

// Decode makes a snapshot, or a status if the server says that it failed.
func (c codec) Decode(data []byte, _ *schema.GroupVersionKind, _ runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	header := gjson.GetManyBytes(data, "apiVersion", "kind")
	gvk := schema.FromAPIVersionAndKind(header[0].Str, header[1].Str)
	if header[0].Str == "v1" && header[1].Str == "Status" {
		status := &metav1.Status{}
		if err := json.Unmarshal(data, status); err != nil {
			return nil, nil, fmt.Errorf("a status from the API server is not readable: %w", err)
		}
		return status, &gvk, nil
	}
	snapshot, err := object.ParseSnapshot(data)
	if err != nil {
		return nil, nil, err
	}
	return snapshot.Packed(), &gvk, nil
}
