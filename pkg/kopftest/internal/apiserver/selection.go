package apiserver

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/sharding"
	sharded "k8s.io/apiserver/pkg/sharding"

	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/resource"
)

// selection restricts a list or a watch.
type selection struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
	// absent are the values of built-in objects that do not have the fields.
	absent map[string]string
	shards sharding.Selector
}

// selection returns the restrictions of a request.
func (s *Server) selection(r *request) (selection, error) {
	byLabel, err := labels.Parse(r.query.Get("labelSelector"))
	if err != nil {
		return selection{}, apierrors.NewBadRequest("unable to parse the label selector: " + err.Error())
	}
	byField, err := fields.ParseSelector(r.query.Get("fieldSelector"))
	if err != nil {
		return selection{}, apierrors.NewBadRequest("unable to parse the field selector: " + err.Error())
	}
	absent := builtinFields[r.of.GroupResource()]
	for _, one := range byField.Requirements() {
		_, isKnown := absent[one.Field]
		if !isKnown && one.Field != "metadata.name" && one.Field != "metadata.namespace" && !slices.Contains(r.of.SelectableFields, one.Field) {
			return selection{}, apierrors.NewBadRequest("field label not supported: " + one.Field)
		}
	}
	shards, err := s.shards(r)
	if err != nil {
		return selection{}, err
	}
	return selection{namespace: r.key.Namespace, labels: byLabel, fields: byField, absent: absent, shards: shards}, nil
}

// shards returns the ranges of hashes to which a request is restricted. A mistake in them is answered with 500 and
// without a reason, as kube-apiserver does.
func (s *Server) shards(r *request) (sharding.Selector, error) {
	text := r.query.Get("shardSelector")
	if text == "" || !s.options.ShardedLists {
		return sharding.Everything(), nil
	}
	shards, err := sharded.Parse(text)
	if err != nil {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "invalid shard selector: " + err.Error(),
		}}
	}
	return shards, nil
}

// builtinFields are the fields by which clients can select built-in objects, besides the name and the namespace, with the
// values of objects that do not have them.
var builtinFields = map[schema.GroupResource]map[string]string{
	{Resource: "pods"}: {
		"spec.nodeName": "", "spec.restartPolicy": "", "spec.schedulerName": "", "spec.serviceAccountName": "", "spec.hostNetwork": "false",
		"status.phase": "", "status.podIP": "", "status.podIPs": "", "status.nominatedNodeName": "",
	},
	{Resource: "nodes"}:                  {"spec.unschedulable": "false"},
	{Resource: "namespaces"}:             {"status.phase": ""},
	{Resource: "secrets"}:                {"type": ""},
	{Resource: "services"}:               {"spec.clusterIP": "", "spec.type": ""},
	{Resource: "replicationcontrollers"}: {"status.replicas": "0"},
	{Resource: "events"}: {
		"involvedObject.kind": "", "involvedObject.namespace": "", "involvedObject.name": "", "involvedObject.uid": "",
		"involvedObject.apiVersion": "", "involvedObject.resourceVersion": "", "involvedObject.fieldPath": "",
		"reason": "", "reportingComponent": "", "source": "", "type": "",
	},
	{Group: "events.k8s.io", Resource: "events"}: {
		"regarding.kind": "", "regarding.namespace": "", "regarding.name": "", "regarding.uid": "",
		"regarding.apiVersion": "", "regarding.resourceVersion": "", "regarding.fieldPath": "",
		"reason": "", "reportingController": "", "type": "",
	},
	{Group: "apps", Resource: "replicasets"}:                               {"status.replicas": "0"},
	{Group: "batch", Resource: "jobs"}:                                     {"status.successful": "0"},
	{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}: {"spec.signerName": ""},
}

// noteShards adds to the metadata of a list to which shards it is restricted. Lists of custom objects cannot have that
// in Kubernetes 1.37.
func (s selection) noteShards(of *resource.Resource, metadata map[string]any) {
	if !s.shards.Empty() && !of.IsCustom() {
		metadata["shardInfo"] = map[string]any{"selector": s.shards.String()}
	}
}

// reads reports whether the server reads an object from its storage in order to find those that are selected.
func (s selection) reads(object *unstructured.Unstructured) bool {
	name, isOne := s.fields.RequiresExactMatch(metav1.ObjectNameField)
	return (s.namespace == "" || object.GetNamespace() == s.namespace) && (!isOne || object.GetName() == name)
}

// matches reports whether an object is selected.
func (s selection) matches(object *unstructured.Unstructured) bool {
	if s.namespace != "" && object.GetNamespace() != s.namespace || !s.labels.Matches(labels.Set(object.GetLabels())) {
		return false
	}
	isInShards, err := s.shards.Matches(object)
	if err != nil || !isInShards {
		return false
	}
	found := fields.Set{}
	for _, one := range s.fields.Requirements() {
		path := one.Field
		if rest, ok := strings.CutPrefix(path, "regarding."); ok { // selectors name it in another way
			path = "involvedObject." + rest
		}
		value, exists, err := unstructured.NestedFieldNoCopy(object.Object, strings.Split(path, ".")...)
		found[one.Field] = s.absent[one.Field]
		if err == nil && exists {
			found[one.Field] = fmt.Sprint(value)
		}
	}
	return s.fields.Matches(found)
}
