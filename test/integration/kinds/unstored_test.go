package kinds

import (
	"cmp"
	"strings"
)

const (
	gated   = "a feature gate is off"
	zero    = "it is left out, because its value is the zero value"
	removed = "the field has no effect anymore"
)

// unstored are the fields, and the definitions, that the API server accepts and does not store.
var unstored = map[string]string{
	"CertificateSigningRequestSpec.uid":                  "it is that of the client, which has none",
	"ClusterTrustBundleProjection.user":                  gated,
	"ConfigMapNodeConfigSource":                          removed,
	"ConfigMapVolumeSource.defaultUser":                  gated,
	"CustomResourceDefinitionSpec.preserveUnknownFields": zero,
	"DeviceCounterConsumption.compatibilityGroups":       gated,
	"DeviceDerivedAttribute":                             gated,
	"DeviceSubRequest.derivedAttributes":                 gated,
	"Device.nodeAllocatableResources":                    gated,
	"DownwardAPIVolumeFile.user":                         gated,
	"DownwardAPIVolumeSource.defaultUser":                gated,
	"EmptyDirVolumeSource.mode":                          gated,
	"Endpoint.deprecatedTopology":                        removed,
	"EvictionResponder":                                  gated,
	"ExactDeviceRequest.derivedAttributes":               gated,
	"GRPCAction.mode":                                    gated,
	"HTTPGetAction.protocol":                             gated,
	"JobSchedulingConfiguration":                         gated,
	"JobSpec.scheduling":                                 gated,
	"KeyToPath.user":                                     gated,
	"LeaseSpec.preferredHolder":                          gated,
	"LeaseSpec.strategy":                                 gated,
	"Lifecycle.stopSignal":                               gated,
	"NodeAllocatableMapping":                             gated,
	"NodeAllocatableOverhead":                            gated,
	"NodeAllocatableResource":                            gated,
	"NodeConfigSource":                                   removed,
	"NodePodPreemptionPolicy":                            gated,
	"NodeSpec.configSource":                              removed,
	"NodeSpec.podPreemptionPolicy":                       gated,
	"PodCertificateProjection.user":                      gated,
	"PodSchedulingGroup":                                 gated,
	"PodSpec.evictionResponders":                         gated,
	"PodSpec.schedulingGroup":                            gated,
	"PriorityClass.globalDefault":                        zero,
	"ProjectedVolumeSource.defaultUser":                  gated,
	"ResourceSliceSpec.partitionTypeAttribute":           gated,
	"ResourceSliceSpec.skipNodeOperations":               gated,
	"Secret.stringData":                                  "it is stored as data",
	"SecretVolumeSource.defaultUser":                     gated,
	"ServiceAccountTokenProjection.user":                 gated,
	"TopologyConstraint":                                 gated,
	"VolumeMount.bindMountOptions":                       gated,
	"WorkloadPodGroupDisruptionMode":                     gated,
	"WorkloadPodGroupGangSchedulingPolicy":               gated,
	"WorkloadPodGroupResourceClaim":                      gated,
	"WorkloadPodGroupSchedulingConstraints":              gated,
	"WorkloadPodGroupSchedulingPolicy":                   gated,
}

// whyUnstored returns why the API server does not store a field, or nothing if it must.
func whyUnstored(field string) string {
	definition := field[:strings.LastIndex(field, ".")]
	return cmp.Or(lookup(unstored, "", field), lookup(unstored, "", definition))
}
