// Package broken does not compile.
package broken

import "github.com/kopf-go/kopf/pkg/kopf"

func init() { kopf.OnCreate(nonsense) }
