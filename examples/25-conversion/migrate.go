package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const definitionName = "sites.kopf.dev"

// migrate moves all stored objects to the storage version of the definition, and then says in the definition that there
// are no others. It can be interrupted and repeated.
func migrate(ctx context.Context) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	known := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(known); err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: known})
	if err != nil {
		return err
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(ctx, client.ObjectKey{Name: definitionName}, definition); err != nil {
		return err
	}
	storage := storageVersion(definition)
	moved, err := rewrite(ctx, c, storage)
	if err != nil {
		return err
	}
	// The patch has the resource version: it fails if the definition has got another storage version in the meantime.
	before := definition.DeepCopy()
	definition.Status.StoredVersions = []string{storage}
	err = c.Status().Patch(ctx, definition, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return errors.New("the definition has changed during the migration: repeat it")
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d objects are stored as %s.\n", moved, storage)
	return nil
}

func storageVersion(definition *apiextensionsv1.CustomResourceDefinition) string {
	for _, version := range definition.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}

// rewrite updates every object without a change: the API server stores it in the storage version then.
func rewrite(ctx context.Context, c client.Client, version string) (count int, err error) {
	page := &unstructured.UnstructuredList{}
	page.SetAPIVersion("kopf.dev/" + version)
	page.SetKind("SiteList")
	for {
		if err := c.List(ctx, page, client.Limit(100), client.Continue(page.GetContinue())); err != nil {
			return count, err
		}
		for i := range page.Items {
			if err := rewriteOne(ctx, c, &page.Items[i]); err != nil {
				return count, err
			}
			count++
		}
		if page.GetContinue() == "" {
			return count, nil
		}
	}
}

// rewriteOne updates an object, unless it is gone: another client may have deleted or changed it.
func rewriteOne(ctx context.Context, c client.Client, site *unstructured.Unstructured) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		err := c.Update(ctx, site)
		if apierrors.IsConflict(err) {
			return errors.Join(c.Get(ctx, client.ObjectKeyFromObject(site), site), err)
		}
		return err
	})
	return client.IgnoreNotFound(err)
}
