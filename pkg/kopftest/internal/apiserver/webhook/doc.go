// Package webhook calls the admission webhooks that the configurations in an API server
// name.
//
// It knows rules, selectors, failure policies, and dry runs, but neither match conditions
// nor reinvocation. Webhooks are called in the order of their names, one after the other.
package webhook
