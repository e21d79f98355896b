// Package kube is the API of the cluster as the engine uses it: it reads and
// watches objects as compact snapshots, straight from the bytes of the answers,
// and writes them with merge patches. It decodes nothing that nobody asks for.
package kube
