// Package discovery answers which resources an API server has, in the aggregated form that
// clients use first, and in the form with one document per group and version.
package discovery
