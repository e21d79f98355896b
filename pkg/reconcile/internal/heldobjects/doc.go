// Package heldobjects knows which objects are held: some of their handlers cannot be called
// until a person acts. It counts them for the metrics, tells new findings from known ones, so
// that each is reported once, and summarizes those of a start in a few log lines.
//
// Only held objects take memory.
package heldobjects
