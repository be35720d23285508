import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { certificateFolder, makeCertificate } from '../support/certificates.ts'
import { configFiles } from '../support/config-files.ts'
import { misfitsOf } from '../support/kubernetes-members.ts'
import { needing } from '../support/machine.ts'
import { sealKey } from '../support/seal-key.ts'
import { ROOT } from '../support/spawn-postern.ts'
import { SETTINGS } from '../support/settings.ts'

const FOLDERS = ['.', 'migrate', 'secrets', 'database'] as const

type Labels = Readonly<Record<string, string>>

interface Container {
  readonly name: string
  readonly image: string
  readonly args?: readonly string[]
  readonly securityContext: object
  readonly resources: object
  readonly env?: readonly { readonly name: string; readonly value?: string }[]
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[]
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
}

interface Pod {
  readonly metadata: { readonly labels: Labels }
  readonly spec: {
    readonly terminationGracePeriodSeconds: number
    readonly securityContext: object
    readonly containers: readonly Container[]
    readonly volumes: readonly {
      readonly name: string
      readonly configMap?: { readonly name: string }
      readonly secret?: { readonly secretName: string }
      readonly persistentVolumeClaim?: { readonly claimName: string }
    }[]
  }
}

interface Resource {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels?: Labels }
  readonly data?: Labels
  readonly stringData?: Labels
  readonly spec: {
    readonly template: Pod
    readonly selector: Labels & { readonly matchLabels?: Labels }
    readonly podSelector: { readonly matchLabels: Labels }
    readonly replicas?: number
    readonly scaleTargetRef: { readonly kind: string; readonly name: string }
    readonly metrics: readonly unknown[]
    readonly strategy: object
    readonly ports: readonly { readonly targetPort: string }[]
    readonly volumeClaimTemplates?: readonly Resource[]
  }
}

function render(folder: string): readonly Resource[] {
  const path = join(ROOT, 'deploy/kubernetes/nodes', folder)
  const text = execFileSync('kubectl', ['kustomize', path], { encoding: 'utf8' })
  return parseAllDocuments(text, { uniqueKeys: true }).map((document) => document.toJS() as Resource)
}

const WORKLOADS = ['Deployment', 'StatefulSet', 'Job']

describe('deploy/kubernetes/nodes', needing('kubectl'), () => {
  const rendered = new Map<string, readonly Resource[]>()
  beforeAll(() => {
    for (const folder of FOLDERS) rendered.set(folder, render(folder))
  })
  const all = (): readonly Resource[] => [...rendered.values()].flat()
  const only = (folder: string, kind: string, start = ''): Resource => {
    const found = rendered
      .get(folder)!
      .filter((each) => each.kind === kind && each.metadata.name.startsWith(start))
    expect(found, `${folder}: ${kind}`).toHaveLength(1)
    return found[0]!
  }
  const workloads = (): readonly Resource[] => all().filter(({ kind }) => WORKLOADS.includes(kind))
  const names = (kind: string): readonly string[] =>
    all().flatMap((each) => (each.kind === kind ? [each.metadata.name] : []))

  /** The configuration as a pod reads it, beside the files that the manifests mount. */
  function withFiles(files: Readonly<Record<string, string>>): string {
    const source = only('.', 'ConfigMap').data?.['postern.yaml'] ?? ''
    const text = source.replaceAll(/\/run\/(secrets\/postern|certificates)\//g, '')
    return configFiles({ ...files, 'postern.yaml': text })('postern.yaml')
  }
  const served = (): string =>
    withFiles({
      'admin-token': 'a-token-of-the-tests-0123456789',
      'store-url': 'postgres://postern:a-password@postern-database:5432/postern',
      seal: sealKey('first').key,
      'ca.crt': readFileSync(makeCertificate(certificateFolder(), 'ca').certificate, 'utf8'),
    })
  const environment = { POSTERN_AUDIT_FOLDER: '/audit/postern-1' }
  const configuration = () => SETTINGS.read(served(), environment).configuration!

  it('has only members that Kubernetes knows, and each resource once', () => {
    for (const [folder, resources] of rendered)
      expect(resources.flatMap(misfitsOf), `nodes/${folder}`).toEqual([])
    const named = all().map(({ kind, metadata }) => `${kind}/${metadata.name}`)
    // The configuration goes with the pods and with the migration.
    expect(named.length - new Set(named).size).toBe(1)
  })

  it('would be refused with a member that Kubernetes does not know', () => {
    const { template, ...spec } = only('.', 'Deployment').spec
    const misspelt = { ...only('.', 'Deployment'), spec: { ...spec, template, maxSurge: '25%' } }
    expect(misfitsOf(misspelt)).toEqual(['Deployment.spec.maxSurge is not known'])
    const typed = { ...misspelt, spec: { ...spec, template, replicas: '3' } }
    expect(misfitsOf(typed)).toEqual(['Deployment.spec.replicas is not number'])
    expect(misfitsOf({ apiVersion: 'v2', kind: 'Pod' })).toEqual(['v2 Pod is not known'])
  })

  it('names what is there: labels, ports, configuration, secrets, volumes', () => {
    const claims = names('PersistentVolumeClaim')
    for (const { spec } of workloads()) {
      const { volumes, containers } = spec.template.spec
      for (const { configMap, secret, persistentVolumeClaim: claim } of volumes) {
        if (configMap) expect(names('ConfigMap')).toContain(configMap.name)
        if (secret) expect(names('Secret')).toContain(secret.secretName)
        if (claim) expect(claims).toContain(claim.claimName)
      }
      const there = [...volumes.map(({ name }) => name), 'data']
      for (const { volumeMounts } of containers)
        expect(there).toEqual(expect.arrayContaining(volumeMounts.map(({ name }) => name)))
    }
    for (const [folder, kind] of [
      ['.', 'Deployment'],
      ['database', 'StatefulSet'],
    ] as const) {
      const { template } = only(folder, kind).spec
      const { selector, ports } = only(folder, 'Service').spec
      expect(template.metadata.labels).toMatchObject(selector)
      expect(template.metadata.labels).toMatchObject(
        only(folder, 'NetworkPolicy').spec.podSelector.matchLabels,
      )
      const bound = template.spec.containers.flatMap((container) => container.ports ?? [])
      for (const { targetPort } of ports) expect(bound.map(({ name }) => name)).toContain(targetPort)
    }
  })

  it('lets no container be root, write to its root, or take all of a node', () => {
    for (const { spec } of workloads()) {
      expect(spec.template.spec).toMatchObject({
        ...{ automountServiceAccountToken: false, enableServiceLinks: false },
        securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      })
      for (const { securityContext, resources } of spec.template.spec.containers) {
        expect(securityContext).toEqual({
          ...{ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true },
          capabilities: { drop: ['ALL'] },
        })
        const some = expect.any(String) as string
        expect(resources).toMatchObject({ requests: { cpu: some, memory: some }, limits: { memory: some } })
      }
    }
  })

  it('serves and migrates with one image and one configuration', () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
    const ours = [only('.', 'Deployment'), only('migrate', 'Job')].map(({ spec }) => spec.template.spec)
    for (const { containers } of ours) expect(containers[0]?.image).toBe(`postern:${version}`)
    const configurations = ours.map(({ volumes }) => volumes.find(({ name }) => name === 'config')?.configMap)
    expect(configurations[0]).toEqual(configurations[1])
    expect(ours[1]?.containers[0]?.args).toEqual(['migrate'])
  })

  it('rolls out without taking a pod away first, scales by processor time alone, and empties machines one pod at a time', () => {
    const { strategy, replicas } = only('.', 'Deployment').spec
    expect(strategy).toEqual({ type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: '25%' } })
    expect(replicas).toBeUndefined()
    const { scaleTargetRef, metrics } = only('.', 'HorizontalPodAutoscaler').spec
    expect(scaleTargetRef).toMatchObject({ kind: 'Deployment', name: 'postern' })
    const target = { type: 'Utilization', averageUtilization: 60 }
    expect(metrics).toEqual([{ type: 'Resource', resource: { name: 'cpu', target } }])
    expect(only('.', 'PodDisruptionBudget').spec).toMatchObject({ maxUnavailable: 1 })
  })

  it('gives a pod more time to end than its calls may take', () => {
    const { drain, lameDuck } = configuration().server.timeouts
    const { terminationGracePeriodSeconds: grace } = only('.', 'Deployment').spec.template.spec
    expect(grace * 1000).toBeGreaterThanOrEqual(lameDuck + drain + 5000)
  })

  it('binds what the probes ask where the kubelet can reach it, and the admin listener on loopback', () => {
    const { server, admin } = configuration()
    const [postern] = only('.', 'Deployment').spec.template.spec.containers
    const ports = postern?.ports?.map(({ containerPort }) => `0.0.0.0:${containerPort}`)
    expect([server.listen, admin.probes]).toEqual(ports)
    expect(admin.listen).toMatch(/^127\.0\.0\.1:/)
    expect(postern).toMatchObject({
      startupProbe: { httpGet: { path: '/health/ready', port: 'probes' } },
      livenessProbe: { httpGet: { path: '/health/live', port: 'probes' } },
      readinessProbe: { httpGet: { path: '/health/ready', port: 'probes' } },
    })
  })

  it('holds no secret, and a pod whose secrets are not filled in does not start', () => {
    for (const { stringData } of rendered.get('secrets')!)
      expect(Object.values(stringData ?? {}).filter((value) => value !== '')).toEqual([])
    const empty = withFiles({ 'admin-token': '', 'store-url': '', seal: '', 'ca.crt': '' })
    const { problems } = SETTINGS.read(empty, environment)
    const paths = problems.list.map(({ path }) => path.join('.'))
    expect(paths).toEqual(expect.arrayContaining(['admin.token', 'store.url', 'store.seal.0.key']))
  })

  it('holds a configuration that can be served, without a warning', async () => {
    expect((await SETTINGS.check(served(), environment)).list).toEqual([])
  })
})
