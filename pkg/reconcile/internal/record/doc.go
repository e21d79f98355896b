// Package record reads and writes the operator's records on an object about the handling of its
// changes. They are the last handled essence (the diff base), the states at which the handlers
// of the open cycle have ended, and the progress of each handler.
//
// A Cycle is the part of one change's handling that is stored on the object. Change
// detection fills it; the writer converts it to patches, again for each version of the object
// that it writes to. A Keeper does both with the storages of the settings.
//
// Unreadable values count as absent: they are reported once per object, and the object is
// handled without them. This package does not call the API server.
//
// Specification: Continuity; Configuration, "Storing the progress" and "Change
// detection".
package record
