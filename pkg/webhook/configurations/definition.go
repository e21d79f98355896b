package configurations

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/conversion"
	"github.com/kopf-go/kopf/pkg/internal/managedfields"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// conversionPath is the path of the conversions, in front of the name of a definition.
const conversionPath = "convert/"

const kindDefinition = "CustomResourceDefinition"

// DefinitionAt returns the name of the definition whose objects are converted at the path of a request.
func DefinitionAt(path string) (name string, ok bool) {
	return strings.CutPrefix(strings.Trim(path, "/"), conversionPath)
}

// definitionState is what the writer knows of the conversion of one definition.
type definitionState struct {
	rivals rivals
	// saidAddress and saidMissing are what the log says about it.
	saidAddress, saidMissing string
}

// NewDefinition returns an empty definition, for a client to read.
func NewDefinition(name string) *unstructured.Unstructured {
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind(kindDefinition))
	definition.SetName(name)
	return definition
}

// applyConversion writes spec.conversion of a definition if it differs from what the operator needs. Everything else in
// it is left alone. A definition that does not exist is left to those who install it.
func (w *writer) applyConversion(ctx context.Context, graph *conversion.Graph, config admissionregistrationv1.WebhookClientConfig) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return w.applyConversionOnce(ctx, graph, config) })
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("the operator is not allowed to manage the conversion of its objects: allow its service account to get and patch "+
			"the customresourcedefinition %s, or leave Settings.Admission.Managed empty: %w", graph.Name, err)
	}
	if err != nil {
		return fmt.Errorf("the conversion of the definition %s: %w", graph.Name, err)
	}
	return nil
}

// applyConversionOnce reads a definition, and writes it if it differs. It fails with a conflict if it must be read again.
func (w *writer) applyConversionOnce(ctx context.Context, graph *conversion.Graph, config admissionregistrationv1.WebhookClientConfig) error {
	state := w.definition(graph.Name)
	definition := NewDefinition(graph.Name)
	err := w.client.Get(ctx, client.ObjectKeyFromObject(definition), definition)
	switch {
	case apierrors.IsNotFound(err):
		*state = definitionState{}
		return nil
	case err != nil:
		return err
	}
	w.reportMissing(graph, definition, state)
	present, err := ConversionOf(definition)
	if err != nil {
		return err
	}
	want := NewConversion(graph.Name, config)
	if injectsCA(definition) && present.Webhook != nil && present.Webhook.ClientConfig != nil {
		want.Webhook.ClientConfig.CABundle = present.Webhook.ClientConfig.CABundle
	}
	if isEqual(want, present) {
		state.rivals.recordApplied(kindDefinition, definition, want)
		w.sayConverted(graph.Name, want, state)
		return nil
	}
	restores := state.rivals.isApplied(kindDefinition, want)
	if restores && !w.mayRestoreConversion(definition, state) {
		return nil
	}
	if err := patchConversion(ctx, w.client, definition, want); err != nil {
		return err
	}
	if present.Strategy != apiextensionsv1.WebhookConverter {
		w.switched(graph.Name)
	}
	state.rivals.recordApplied(kindDefinition, definition, want)
	if restores {
		state.rivals.changes = state.rivals.changes.Next(rivalRule, time.Now())
	}
	w.sayConverted(graph.Name, want, state)
	return nil
}

// definition returns the state of a definition.
func (w *writer) definition(name string) *definitionState {
	if w.definitions == nil {
		w.definitions = map[string]*definitionState{}
	}
	if w.definitions[name] == nil {
		w.definitions[name] = &definitionState{}
	}
	return w.definitions[name]
}

// removeConversion ends the conversion of the objects of a definition by the operator, unless objects need it.
func (w *writer) removeConversion(ctx context.Context, name string) error {
	definition := NewDefinition(name)
	err := w.client.Get(ctx, client.ObjectKeyFromObject(definition), definition)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	removable, reason, err := IsConversionRemovable(definition)
	switch {
	case err != nil:
		return err
	case removable:
		if err := patchConversion(ctx, w.client, definition, &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}); err != nil {
			return err
		}
		w.logger.Info("The conversion is removed from the definition, because the operator stops: all objects are stored and served in one version.", "definition", name)
		return nil
	case reason != "":
		w.logger.Info("The conversion stays in the definition, although the operator stops: without it, the API server would cut the objects to the fields of other versions. "+
			"Requests that need it fail until the operator runs again.", "definition", name, "reason", reason)
	}
	return nil
}

// patchConversion writes spec.conversion on top of the version that was read.
func patchConversion(ctx context.Context, c client.Client, definition *unstructured.Unstructured, want *apiextensionsv1.CustomResourceConversion) error {
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return err
	}
	changed := definition.DeepCopy()
	if err := unstructured.SetNestedMap(changed.Object, raw, "spec", "conversion"); err != nil {
		return err
	}
	return c.Patch(ctx, changed, client.MergeFromWithOptions(definition, client.MergeFromWithOptimisticLock{}))
}

// NewConversion returns the conversion of the objects of a definition by the operator, with the defaults of the API
// server.
func NewConversion(name string, config admissionregistrationv1.WebhookClientConfig) *apiextensionsv1.CustomResourceConversion {
	located := &apiextensionsv1.WebhookClientConfig{CABundle: config.CABundle}
	if config.URL != nil {
		located.URL = new(joinPath(*config.URL, conversionPath+name))
	}
	if service := config.Service; service != nil {
		located.Service = &apiextensionsv1.ServiceReference{
			Namespace: service.Namespace, Name: service.Name, Port: new(ptr.Deref(service.Port, httpsPort)),
			Path: new(joinPath(ptr.Deref(service.Path, ""), conversionPath+name)),
		}
	}
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook:  &apiextensionsv1.WebhookConversion{ClientConfig: located, ConversionReviewVersions: []string{"v1"}},
	}
}

// ConversionOf returns spec.conversion of a definition.
func ConversionOf(definition *unstructured.Unstructured) (*apiextensionsv1.CustomResourceConversion, error) {
	var present apiextensionsv1.CustomResourceConversion
	raw, found, err := unstructured.NestedMap(definition.Object, "spec", "conversion")
	if err != nil || !found {
		return &present, err
	}
	return &present, runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &present)
}

// IsConversionRemovable reports whether the operator converts the objects of a definition, and the API server does not
// need that: all objects are stored and served in one version. Otherwise, the reason says why it needs it; it is empty
// if another program converts the objects. The strategy None would not refuse a request for another version: it would
// drop the fields that the other version does not have, and store the rest.
func IsConversionRemovable(definition *unstructured.Unstructured) (removable bool, reason string, err error) {
	present, err := ConversionOf(definition)
	if err != nil || !isOurs(present, definition.GetName()) {
		return false, "", err
	}
	usage, err := UsageOf(definition)
	if err != nil {
		return false, "", err
	}
	versions := usage.All()
	if len(versions) <= 1 {
		return true, "", nil
	}
	return false, fmt.Sprintf("its objects are served as %s, and can be stored as %s", strings.Join(usage.Served, ", "), strings.Join(usage.Stored, ", ")), nil
}

// IsConverted reports whether the API server lets an operator of this library convert the objects of a definition.
func IsConverted(definition *unstructured.Unstructured) bool {
	present, err := ConversionOf(definition)
	return err == nil && isOurs(present, definition.GetName())
}

// isOurs reports whether a conversion leads to an operator of this library.
func isOurs(present *apiextensionsv1.CustomResourceConversion, name string) bool {
	if present.Strategy != apiextensionsv1.WebhookConverter || present.Webhook == nil || present.Webhook.ClientConfig == nil {
		return false
	}
	config := present.Webhook.ClientConfig
	path := ""
	switch {
	case config.Service != nil:
		path = ptr.Deref(config.Service.Path, "")
	case config.URL != nil:
		parsed, err := url.Parse(*config.URL)
		if err != nil {
			return false
		}
		path = parsed.Path
	}
	return strings.HasSuffix(path, "/"+conversionPath+name)
}

// UsageOf returns what the versions of a definition are used for.
func UsageOf(definition *unstructured.Unstructured) (conversion.Usage, error) {
	var read struct {
		Spec struct {
			Versions []struct {
				Name            string
				Served, Storage bool
			}
		}
		Status struct{ StoredVersions []string }
	}
	if err := object.NewView(definition.Object).Decode(&read); err != nil {
		return conversion.Usage{}, err
	}
	usage := conversion.Usage{Stored: read.Status.StoredVersions}
	for _, version := range read.Spec.Versions {
		if version.Served {
			usage.Served = append(usage.Served, version.Name)
		}
		if version.Storage {
			usage.Storage = version.Name
		}
	}
	if len(usage.Served) == 0 && usage.Storage == "" {
		return usage, errors.New("it has no versions")
	}
	return usage, nil
}

// reportMissing logs the conversions that the definition needs and that are not declared, when they change.
func (w *writer) reportMissing(graph *conversion.Graph, definition *unstructured.Unstructured, state *definitionState) {
	usage, err := UsageOf(definition)
	if err == nil {
		err = graph.Missing(usage)
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != state.saidMissing {
		w.logger.Error(err, "Some objects cannot be converted: requests that need it fail until this is corrected.", "definition", graph.Name)
	}
	state.saidMissing = text
}

// sayConverted logs the address that the API server calls, when it changes.
func (w *writer) sayConverted(name string, applied *apiextensionsv1.CustomResourceConversion, state *definitionState) {
	config := applied.Webhook.ClientConfig
	key := "url"
	address := ptr.Deref(config.URL, "")
	if config.Service != nil {
		key = "service"
		address = config.Service.Namespace + "/" + config.Service.Name
	}
	if state.saidAddress == address {
		return
	}
	state.saidAddress = address
	w.logger.Info("The cluster lets the operator convert objects.", "definition", name, key, address)
}

// mayRestoreConversion is mayRestore for a definition.
func (w *writer) mayRestoreConversion(definition *unstructured.Unstructured, state *definitionState) bool {
	allowed, report := state.rivals.yields(time.Now())
	if !report {
		return allowed
	}
	by := "unknown"
	at := (*metav1.Time)(nil)
	if last := managedfields.LastWriter(definition.GetManagedFields(), state.rivals.applied[kindDefinition].managers, object.Path{"spec", "conversion"}); last != nil {
		by = last.Manager
		at = last.Time
	}
	w.logger.Info("Another client has changed spec.conversion of a definition. It is restored. Until then, the API server did not let this operator convert the objects. "+
		"Remove the field from what the other client applies.", "definition", definition.GetName(), "by", by, "at", at)
	return allowed
}

// injectsCA reports whether cert-manager injects the CA bundle of an object.
func injectsCA(of client.Object) bool {
	annotations := of.GetAnnotations()
	sources := []string{"cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca"}
	return slices.ContainsFunc(sources, func(source string) bool { return annotations[source] != "" })
}
