// Command kopf runs packages of handlers as Kubernetes operators, and pauses and
// resumes operators that are running.
package main

import (
	"os"
	_ "time/tzdata" // for images without time zones

	"github.com/kopf-go/kopf/pkg/cli"
	"github.com/kopf-go/kopf/pkg/serve"
)

func main() { os.Exit(cli.KopfMain(startCluster, serve.Command{})) }
