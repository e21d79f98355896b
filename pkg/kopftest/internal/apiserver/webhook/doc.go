// Package webhook calls the admission webhooks that the configurations in an API server
// name.
//
// It knows rules, selectors, match conditions, failure policies, and dry runs, but no
// reinvocation. Webhooks are called in the order of their names, one after the other.
package webhook
