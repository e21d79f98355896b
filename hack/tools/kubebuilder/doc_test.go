// Package kubebuilder tests the plugin of kubebuilder with kubebuilder itself.
package kubebuilder
