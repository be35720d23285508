/**
 * The members that our manifests may have, of all those that the API of Kubernetes knows. The API server drops a member
 * that it does not know, or refuses it, and here is none to ask. Add a member to this list after looking it up there.
 */

/** What a value may be: `map` has texts; a list of one shape; an object with these members, and no others. */
type Shape =
  'text' | 'number' | 'flag' | 'either' | 'map' | readonly [Shape] | { readonly [member: string]: Shape }

const METADATA = { name: 'text', labels: 'map', annotations: 'map' } as const
const LABELS = {
  matchLabels: 'map',
  matchExpressions: [{ key: 'text', operator: 'text', values: ['text'] }],
} as const
const RESOURCES = { requests: 'map', limits: 'map' } as const

const PROBE = {
  httpGet: { path: 'text', port: 'either' },
  exec: { command: ['text'] },
  periodSeconds: 'number',
  timeoutSeconds: 'number',
  failureThreshold: 'number',
} as const

const CONTAINER = {
  name: 'text',
  image: 'text',
  command: ['text'],
  args: ['text'],
  env: [{ name: 'text', value: 'text', valueFrom: { fieldRef: { fieldPath: 'text' } } }],
  ports: [{ name: 'text', containerPort: 'number' }],
  securityContext: {
    allowPrivilegeEscalation: 'flag',
    readOnlyRootFilesystem: 'flag',
    capabilities: { drop: ['text'] },
  },
  resources: RESOURCES,
  startupProbe: PROBE,
  livenessProbe: PROBE,
  readinessProbe: PROBE,
  volumeMounts: [{ name: 'text', mountPath: 'text', readOnly: 'flag' }],
  lifecycle: { preStop: { sleep: { seconds: 'number' } } },
} as const

const VOLUME = {
  name: 'text',
  configMap: { name: 'text' },
  secret: { secretName: 'text', defaultMode: 'number', items: [{ key: 'text', path: 'text' }] },
  emptyDir: {},
  persistentVolumeClaim: { claimName: 'text' },
} as const

const SPREAD = {
  maxSkew: 'number',
  topologyKey: 'text',
  whenUnsatisfiable: 'text',
  labelSelector: LABELS,
  matchLabelKeys: ['text'],
} as const

const POD = {
  metadata: METADATA,
  spec: {
    automountServiceAccountToken: 'flag',
    enableServiceLinks: 'flag',
    restartPolicy: 'text',
    terminationGracePeriodSeconds: 'number',
    securityContext: {
      runAsNonRoot: 'flag',
      runAsUser: 'number',
      runAsGroup: 'number',
      fsGroup: 'number',
      fsGroupChangePolicy: 'text',
      seccompProfile: { type: 'text' },
    },
    topologySpreadConstraints: [SPREAD],
    containers: [CONTAINER],
    volumes: [VOLUME],
  },
} as const

const CLAIM = { accessModes: ['text'], resources: RESOURCES, storageClassName: 'text' } as const

const PEERS = [{ namespaceSelector: LABELS, podSelector: LABELS }] as const

const KINDS: Readonly<Record<string, { readonly [member: string]: Shape }>> = {
  'v1 ConfigMap': { data: 'map' },
  'v1 Secret': { type: 'text', stringData: 'map' },
  'v1 PersistentVolumeClaim': { spec: CLAIM },
  'v1 Service': {
    spec: {
      clusterIP: 'text',
      selector: 'map',
      ports: [{ name: 'text', port: 'number', targetPort: 'either' }],
    },
  },
  'apps/v1 Deployment': {
    spec: {
      replicas: 'number',
      selector: LABELS,
      template: POD,
      strategy: { type: 'text', rollingUpdate: { maxUnavailable: 'either', maxSurge: 'either' } },
    },
  },
  'apps/v1 StatefulSet': {
    spec: {
      serviceName: 'text',
      replicas: 'number',
      selector: LABELS,
      template: POD,
      volumeClaimTemplates: [{ metadata: METADATA, spec: CLAIM }],
    },
  },
  'batch/v1 Job': { spec: { backoffLimit: 'number', activeDeadlineSeconds: 'number', template: POD } },
  'networking.k8s.io/v1 NetworkPolicy': {
    spec: {
      podSelector: LABELS,
      policyTypes: ['text'],
      ingress: [{ from: PEERS, ports: [{ protocol: 'text', port: 'either' }] }],
    },
  },
  'monitoring.coreos.com/v1 ServiceMonitor': {
    spec: {
      selector: LABELS,
      jobLabel: 'text',
      endpoints: [{ port: 'text', path: 'text', interval: 'text' }],
    },
  },
  'policy/v1 PodDisruptionBudget': { spec: { maxUnavailable: 'either', selector: LABELS } },
  'autoscaling/v2 HorizontalPodAutoscaler': {
    spec: {
      scaleTargetRef: { apiVersion: 'text', kind: 'text', name: 'text' },
      minReplicas: 'number',
      maxReplicas: 'number',
      metrics: [
        { type: 'text', resource: { name: 'text', target: { type: 'text', averageUtilization: 'number' } } },
      ],
      behavior: { scaleDown: { stabilizationWindowSeconds: 'number' } },
    },
  },
}

const isList = (shape: Shape): shape is readonly [Shape] => Array.isArray(shape)

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const FITS: Readonly<Record<string, (value: unknown) => boolean>> = {
  text: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  flag: (value) => typeof value === 'boolean',
  either: (value) => typeof value === 'string' || typeof value === 'number',
  map: (value) => isObject(value) && Object.values(value).every((each) => typeof each === 'string'),
}

function* misfits(value: unknown, shape: Shape, path: string): Generator<string> {
  if (typeof shape === 'string') {
    if (!FITS[shape]!(value)) yield `${path} is not ${shape}`
  } else if (isList(shape)) {
    if (!Array.isArray(value)) yield `${path} is not a list`
    else for (const [index, each] of value.entries()) yield* misfits(each, shape[0], `${path}[${index}]`)
  } else if (!isObject(value)) yield `${path} is not an object`
  else
    for (const [member, inner] of Object.entries(value)) {
      const known = shape[member]
      if (known === undefined) yield `${path}.${member} is not known`
      else yield* misfits(inner, known, `${path}.${member}`)
    }
}

/** What is wrong with the form of a resource: an unknown kind or member, or a value of another type. */
export function misfitsOf(resource: object): readonly string[] {
  const { apiVersion, kind, ...rest } = resource as Readonly<Record<string, unknown>>
  const known = KINDS[`${String(apiVersion)} ${String(kind)}`]
  if (known === undefined) return [`${String(apiVersion)} ${String(kind)} is not known`]
  return [...misfits(rest, { metadata: METADATA, ...known }, String(kind))]
}
