package main

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	metacontrollerGroup   = "metacontroller.k8s.io"
	metacontrollerVersion = "v1alpha1"
	compositeKind         = "CompositeController"
)

// install creates what Metacontroller needs: its definitions, and a controller with the hook.
// The hook is called for the first time when everything has been listed; therefore install
// creates an object if there is none. The returned function removes it again.
func install(ctx context.Context, config *rest.Config, hook string) (remove func() error, err error) {
	definitions := []*apiextensionsv1.CustomResourceDefinition{
		definition(compositeKind, "compositecontroller", apiextensionsv1.ClusterScoped),
		definition("DecoratorController", "decoratorcontroller", apiextensionsv1.ClusterScoped),
		definition("ControllerRevision", "controllerrevision", apiextensionsv1.NamespaceScoped),
	}
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: definitions}); err != nil {
		return nil, fmt.Errorf("installing the definitions of Metacontroller: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := addToScheme(scheme); err != nil {
		return nil, err
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	controller := client.ApplyConfigurationFromUnstructured(compositeController(hook))
	if err := api.Apply(ctx, controller, client.FieldOwner("bench"), client.ForceOwnership); err != nil {
		return nil, fmt.Errorf("creating the controller of Metacontroller: %w", err)
	}
	existing := &ExampleList{}
	if err := api.List(ctx, existing, client.InNamespace(namespace), client.Limit(1)); err != nil {
		return nil, err
	}
	if len(existing.Items) > 0 {
		return func() error { return nil }, nil
	}
	probe := &Example{ObjectMeta: metav1.ObjectMeta{Name: probeName, Namespace: namespace}}
	return func() error { return api.Delete(ctx, probe) }, api.Create(ctx, probe)
}

// definition returns the definition of a resource that can contain anything.
func definition(kind, singular string, scope apiextensionsv1.ResourceScope) *apiextensionsv1.CustomResourceDefinition {
	anything := true
	plural := singular + "s"
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name:        plural + "." + metacontrollerGroup,
			Annotations: map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: "unapproved, for a benchmark"}, // the group is protected
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: metacontrollerGroup, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: singular},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: metacontrollerVersion, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &anything,
				}},
			}},
		},
	}
}

// compositeController returns the controller that keeps the children of examples.
func compositeController(hook string) *unstructured.Unstructured {
	var children []any
	for _, child := range [childrenOf][2]string{
		{"apps/v1", "deployments"}, {"v1", "services"}, {"v1", "configmaps"}, {"v1", "secrets"}, {"v1", "serviceaccounts"},
	} {
		children = append(children, map[string]any{
			"apiVersion": child[0], "resource": child[1], "updateStrategy": map[string]any{"method": "InPlace"},
		})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": metacontrollerGroup + "/" + metacontrollerVersion, "kind": compositeKind,
		"metadata": map[string]any{"name": "examples"},
		"spec": map[string]any{
			"parentResource":   map[string]any{"apiVersion": groupVersion.String(), "resource": resource},
			"childResources":   children,
			"generateSelector": true, // the children need no label of ours
			"hooks":            map[string]any{"sync": map[string]any{"webhook": map[string]any{"url": hook}}},
		},
	}}
}
