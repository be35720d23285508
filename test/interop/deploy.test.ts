import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { withoutDebugger } from '../../src/base/kernel/no-debugger.ts'
import { COLLECTION } from '../../src/serve/processes/allocator.ts'
import { configFiles } from '../support/config-files.ts'
import { environmentOf, readCopy, readDockerfile, replayDockerfile } from '../support/dockerfile.ts'
import { misfitsOf } from '../support/kubernetes-members.ts'
import { needing } from '../support/machine.ts'
import { DEMO, ROOT, spawnPostern } from '../support/spawn-postern.ts'
import { basic, issueToken } from '../support/tokens.ts'
import { SETTINGS } from '../support/settings.ts'

const deployed = (name: string): string => readFileSync(join(ROOT, 'deploy', name), 'utf8')

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'postern-deploy-'))
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  return made
}

describe('deploy/Dockerfile', () => {
  const text = deployed('Dockerfile')
  const instructions = readDockerfile(text)
  const all = (name: string): readonly string[] =>
    instructions.filter((instruction) => instruction.name === name).map((instruction) => instruction.text)

  it('builds in stages on a pinned base, and runs as nobody of privilege', () => {
    const bases = all('FROM').map((stage) => stage.split(' ')[0])
    expect(bases).toEqual(['node:26-slim', 'node:26-slim'])
    const user = /^(\d+):\d+$/.exec(all('USER').at(-1) ?? '')?.[1]
    expect(Number(user)).toBeGreaterThan(0)
    // No shell between the signals and Postern.
    expect(all('ENTRYPOINT').map((given) => JSON.parse(given) as unknown)).toEqual([
      ['node', ...withoutDebugger(COLLECTION), 'dist/main.js'],
    ])
  })

  it('copies only what its .dockerignore lets in, and all of that', () => {
    const [everything, ...kept] = deployed('Dockerfile.dockerignore').trim().split('\n')
    expect(everything).toBe('*')
    const copied = all('COPY')
      .map(readCopy)
      .filter(({ from }) => from === undefined)
      .flatMap(({ sources }) => sources)
    expect(new Set(copied)).toEqual(new Set(kept.map((line) => line.replace(/^!/, ''))))
  })

  it('makes, replayed in an empty folder, a Postern that serves and whose healthcheck says so', async () => {
    const stage = replayDockerfile(text, ROOT, folder())
    const root = join(stage.root, stage.workdir)
    for (const left of ['node_modules', 'src/main.ts', 'test'])
      expect([left, existsSync(join(root, left))]).toEqual([left, false])
    const { NODE_ENV = '', NODE_COMPILE_CACHE = '' } = environmentOf(stage)
    const running = await spawnPostern({
      root,
      program: 'dist/main.js',
      environment: { NODE_ENV, NODE_COMPILE_CACHE },
    })
    try {
      expect((await fetch(`${running.adminUrl}/health/ready`)).status).toBe(200)
      expect((await fetch(`${running.baseUrl}/api/1.0/b/ACME/fund-data/fund-list`)).status).toBe(401)
      const command = JSON.parse(/CMD (\[.*\])$/.exec(all('HEALTHCHECK')[0] ?? '')?.[1] ?? '[]') as string[]
      const healthcheck = (port: string) =>
        spawnSync(command[0] ?? '', command.slice(1), { env: { ...process.env, POSTERN_ADMIN_PORT: port } })
      expect(healthcheck(new URL(running.adminUrl).port).status).toBe(0)
      expect(healthcheck('9').status).toBe(1)
    } finally {
      expect(await running.stop()).toBe(0)
    }
  }, 600_000)
})

describe('deploy/postern.service', () => {
  const unit = deployed('postern.service')

  /** The unit with a node that is there, as a file. */
  function written(): string {
    const file = join(folder(), 'postern.service')
    writeFileSync(file, unit.replaceAll('/usr/bin/node', process.execPath))
    return file
  }
  const analyze = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync('systemd-analyze', args, { encoding: 'utf8' })
    return { status, told: `${stdout}${stderr}` }
  }

  it('is a unit without a fault', needing('systemd'), () => {
    expect(analyze('verify', written())).toEqual({ status: 0, told: '' })
  })

  it('is hardened: an exposure of 2 of 10 at most', needing('systemd'), () => {
    const { status, told } = analyze('security', '--offline=true', '--threshold=20', '--no-pager', written())
    expect(status, told).toBe(0)
  })

  it('T3.26 starts a node in which no signal opens the debugger, as `npm start` does', () => {
    expect(unit).toMatch(/^ExecStart=\/usr\/bin\/node --disable-sigusr1 dist\/main\.js serve$/m)
    // A Node that is too old does not know the option, and was sent away before.
    expect(readFileSync(join(ROOT, 'package.json'), 'utf8')).toMatch(
      /node -r \.\/\.config\/oldest-node\.cjs .* \|\| exit; exec node --disable-sigusr1 /,
    )
  })

  it('loses no line of its log under load: journald’s limit of a rate is off', () => {
    expect(unit).toMatch(/^\[Service\]\n(?:(?!\[).*\n)*LogRateLimitIntervalSec=0$/m)
  })

  it('gives a drain more time than Postern takes by default', () => {
    const { configuration } = SETTINGS.read(join(ROOT, 'config/demo.yaml'), {})
    const { drain = 0, lameDuck = 0 } = configuration?.server.timeouts ?? {}
    const seconds = Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1])
    expect(seconds * 1000).toBeGreaterThan(drain + lameDuck)
  })
})

describe('deploy/postern-backup.service and .timer', () => {
  it('are units without a fault', needing('systemd'), () => {
    const at = folder()
    const script = join(ROOT, 'deploy/backup.sh')
    const units = ['postern-backup.service', 'postern-backup.timer'].map((name) => {
      const file = join(at, name)
      writeFileSync(file, deployed(name).replaceAll('/opt/postern/deploy/backup.sh', script))
      return file
    })
    const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', ...units], {
      encoding: 'utf8',
    })
    expect({ status, told: `${stdout}${stderr}` }).toEqual({ status: 0, told: '' })
  })
})

describe('deploy/backup.sh', () => {
  it('C12.4 copies store, keys and trail of a service that serves; another one starts with the copy', async () => {
    const first = await spawnPostern()
    const at = folder()
    const held = await issueToken(first, { scope: 'openid offline_access target:b/ACME' })
    const env = {
      ...process.env,
      POSTERN_CONFIG: DEMO,
      POSTERN_DATA: first.data,
      POSTERN: `${process.execPath} src/main.ts`,
    }
    const { status, stdout, stderr } = spawnSync(join(ROOT, 'deploy/backup.sh'), [at], {
      cwd: ROOT,
      env,
      encoding: 'utf8',
    })
    expect(stderr).toBe('')
    expect(status).toBe(0)
    expect(await first.stop()).toBe(0)
    const copy = stdout.trim().split('\n').at(-1) ?? ''
    expect(readdirSync(at)).toEqual([basename(copy)])
    expect(readdirSync(copy).sort()).toEqual(['audit', 'keys', 'postern.sqlite'])
    const second = await spawnPostern({ environment: { POSTERN_DATA: copy } })
    try {
      expect(await (await fetch(`${second.adminUrl}/health/ready`)).json()).toMatchObject({ status: 'ready' })
      const form = { grant_type: 'refresh_token', refresh_token: held.refresh_token ?? '' }
      const refreshed = await fetch(`${second.authUrl}/connect/token`, {
        method: 'POST',
        headers: { Authorization: basic('acme-books') },
        body: new URLSearchParams(form),
      })
      expect(refreshed.status).toBe(200)
    } finally {
      expect(await second.stop()).toBe(0)
    }
  })
})

interface Container {
  readonly name: string
  readonly image: string
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[]
  readonly securityContext: object
  readonly resources: object
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[]
  readonly [probe: `${string}Probe`]: { readonly httpGet: { readonly path: string; readonly port: string } }
}

interface Pod {
  readonly securityContext: { readonly fsGroup?: number; readonly fsGroupChangePolicy?: string }
  readonly terminationGracePeriodSeconds: number
  readonly enableServiceLinks: boolean
  readonly automountServiceAccountToken: boolean
  readonly containers: readonly Container[]
  readonly volumes: readonly { readonly name: string; readonly configMap: { readonly name: string } }[]
}

type Labels = Readonly<Record<string, string>>

interface Resource {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly data: Readonly<Record<string, string>>
  readonly spec: {
    readonly podSelector: { readonly matchLabels: Labels }
    readonly policyTypes: readonly string[]
    readonly ingress: readonly {
      readonly from: unknown
      readonly ports: readonly { readonly port: string }[]
    }[]
    readonly selector: Labels & { readonly matchLabels: Labels }
    readonly ports: readonly { readonly targetPort: string }[]
    readonly serviceName?: string
    readonly template: { readonly metadata: { readonly labels: Labels }; readonly spec: Pod }
    readonly volumeClaimTemplates?: readonly { readonly metadata: { readonly name: string } }[]
  }
}

const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }

describe('deploy/kubernetes/monitoring.yaml', () => {
  const read = (name: string): readonly Resource[] =>
    parseAllDocuments(deployed(`kubernetes/${name}.yaml`)).map((document) => document.toJS() as Resource)

  it('C11.1 scrapes the probes’ port of the pods of standalone.yaml', () => {
    const [service, monitor] = read('monitoring') as [Resource, Resource]
    expect([service, monitor].flatMap(misfitsOf)).toEqual([])
    const pods = read('standalone').find(({ kind }) => kind === 'StatefulSet')!.spec.template
    expect(pods.metadata.labels).toMatchObject(service.spec.selector)
    const ports = pods.spec.containers.flatMap((container) => container.ports ?? [])
    expect(ports.map(({ name }) => name)).toContain(service.spec.ports[0]!.targetPort)
    expect(service.metadata).toMatchObject({ labels: monitor.spec.selector.matchLabels })
    expect(monitor.spec).toMatchObject({ endpoints: [{ port: 'probes', path: '/metrics' }] })
  })
})

describe.each(['standalone', 'sidecar'])('deploy/kubernetes/%s.yaml', (name) => {
  const documents = parseAllDocuments(deployed(`kubernetes/${name}.yaml`), { uniqueKeys: true })
  const resources = documents.map((document) => document.toJS() as Resource)
  const only = (...kinds: string[]): Resource => {
    const found = resources.filter(({ kind }) => kinds.includes(kind))
    expect(found).toHaveLength(1)
    return found[0]!
  }
  const workload = () => only('StatefulSet', 'Deployment')
  const pod = () => workload().spec.template.spec
  const postern = () => pod().containers.find((container) => container.name === 'postern')!
  const source = () => only('ConfigMap').data['postern.yaml'] ?? ''

  it('is YAML without a fault, of resources that the cluster knows, each with a name of its own', () => {
    expect(documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])).toEqual([])
    expect(resources.flatMap(misfitsOf)).toEqual([])
    const names = resources.map(({ kind, metadata }) => `${kind}/${metadata.name}`)
    expect(new Set(names).size).toBe(names.length)
  })

  it('names what is there: labels, ports, volumes, the service', () => {
    const { selector, template, volumeClaimTemplates = [], serviceName } = workload().spec
    expect(template.metadata.labels).toMatchObject(selector.matchLabels)
    const service = only('Service')
    expect(template.metadata.labels).toMatchObject(service.spec.selector)
    const ports = (postern().ports ?? []).map((port) => port.name)
    for (const { targetPort } of service.spec.ports) expect(ports).toContain(targetPort)
    if (serviceName !== undefined) expect(serviceName).toBe(service.metadata.name)
    expect(pod().volumes.map(({ configMap }) => configMap.name)).toEqual([only('ConfigMap').metadata.name])
    const volumes = [...pod().volumes.map((volume) => volume.name), ...volumeClaimTemplates.map(nameOf)]
    const mounted = pod().containers.flatMap(({ volumeMounts = [] }) =>
      volumeMounts.map((mount) => mount.name),
    )
    expect(mounted.filter((volume) => !volumes.includes(volume))).toEqual([])
  })

  it('lets no container be root, write to its root, or take all of a node', () => {
    expect(pod().securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: 1000,
      seccompProfile: { type: 'RuntimeDefault' },
    })
    expect(pod()).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false })
    for (const { image, securityContext, resources: share } of pod().containers) {
      expect(image).toMatch(/:[0-9.]+$/)
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
      const some = expect.any(String) as string
      expect(share).toMatchObject({ requests: { cpu: some, memory: some }, limits: { memory: some } })
    }
    expect(postern().image).toBe(`postern:${version}`)
  })

  it('C11.1 asks the probes’ listener, which is bound where the kubelet can reach it', () => {
    expect(postern()).toMatchObject({
      startupProbe: { httpGet: { path: '/health/ready', port: 'probes' } },
      livenessProbe: { httpGet: { path: '/health/live', port: 'probes' } },
      readinessProbe: { httpGet: { path: '/health/ready', port: 'probes' } },
    })
    const file = configFiles({ 'postern.yaml': source() })('postern.yaml')
    const { configuration } = SETTINGS.read(file, {})
    const bound = [configuration?.server.listen, configuration?.admin.probes]
    expect(bound).toEqual((postern().ports ?? []).map(({ containerPort }) => `0.0.0.0:${containerPort}`))
    expect(configuration?.admin.listen).toMatch(/^127\.0\.0\.1:/)
    const { drain = 0, lameDuck = 0 } = configuration?.server.timeouts ?? {}
    expect(pod().terminationGracePeriodSeconds * 1000).toBeGreaterThan(drain + lameDuck)
  })

  it('T2.2 trusts no address that another pod may have, and lets in the ingress and monitoring alone', () => {
    const file = configFiles({ 'postern.yaml': source() })('postern.yaml')
    expect(SETTINGS.read(file, {}).configuration?.server.trustedProxies).toEqual([])
    const { podSelector, policyTypes, ingress } = only('NetworkPolicy').spec
    expect(workload().spec.template.metadata.labels).toMatchObject(podSelector.matchLabels)
    expect(policyTypes).toEqual(['Ingress'])
    const ports = (postern().ports ?? []).map((port) => port.name)
    expect(ingress.flatMap((rule) => rule.ports.map(({ port }) => port))).toEqual(ports)
    for (const { from } of ingress)
      expect(from).toEqual([
        { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': expect.any(String) } } },
      ])
  })

  it('T7 says that the group of its volume is the service alone, where it has one', () => {
    const { fsGroup, fsGroupChangePolicy } = pod().securityContext
    const file = configFiles({ 'postern.yaml': source() })('postern.yaml')
    const own = SETTINGS.read(file, {}).configuration?.dataGroup
    expect([own, fsGroupChangePolicy]).toEqual(
      fsGroup === undefined ? ['others', undefined] : ['own', 'OnRootMismatch'],
    )
    expect(fsGroup === undefined).toBe(workload().spec.volumeClaimTemplates === undefined)
  })

  it('holds a configuration that is can be served, without a warning', async () => {
    const file = configFiles({ 'postern.yaml': source() })('postern.yaml')
    expect((await SETTINGS.check(file, {})).list).toEqual([])
  })
})

const nameOf = ({ metadata }: { readonly metadata: { readonly name: string } }): string => metadata.name
