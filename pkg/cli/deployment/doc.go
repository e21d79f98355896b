// Package deployment makes the manifests that deploy an operator, from what its program declares:
// the namespace, the service account with the derived roles, roles for people, the deployment, and
// what metrics and admission handlers need.
//
// # What is known
//
// Nothing is asked of a cluster. The resources are those of custom resource definitions in files,
// and those that every cluster has. A selector that has a group, a version, and a name needs no
// definition: Known assumes the rest, and says so. Other selectors need a cluster, which the caller
// can ask.
//
// # Three forms of the same parts
//
// Each manifest is a template in templates/, or a role of package rbac. Text prints those of the
// selected components one after the other. Write writes them to the folders of a kustomization, in
// which components are added later, and WriteChart to a chart, in which values select them. What a
// component adds to the pods is written once, as a list of additions: Text puts them into the
// deployment, Write makes a patch of them, and WriteChart puts conditions around them. Tests compare
// the three.
//
// The names are final, and begin with the name of the operator: two operators can share a namespace.
//
// This package carries no compatibility promise.
package deployment
