// Package resource knows what an API server does with the objects of a resource, beyond storing
// them. It knows which fields the server drops, defaults, protects, and validates, when it
// counts a new generation, and who owns which field.
//
// Custom resources use the same libraries as the API server of Kubernetes. Built-in
// resources have the fields of their Go types, but neither their defaults nor their
// validation, because these are not part of any library.
package resource
