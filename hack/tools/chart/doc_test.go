// Package chart tests the chart for Helm that the command manifests writes for the example manager: Helm accepts it, and
// renders what the command prints.
package chart
