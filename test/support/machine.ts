/**
 * What some tests need of the machine besides Node: programs that others wrote, and rights. A test that needs what is
 * missing is skipped, and the run tells so at its start and at its end; under `POSTERN_TEST_REQUIRE_ALL=1` it runs and
 * fails.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { postgresPrograms } from './postgres-programs.ts'

interface Part {
  /** What is tested with it. */
  readonly use: string
  readonly isThere: () => boolean
}

const runs = (program: string, ...args: string[]): boolean => {
  const { error, status } = spawnSync(program, args, { stdio: 'ignore' })
  return error === undefined && status === 0
}

/** Where `npm ci --prefix .config/servers` puts servers and clients that bring many packages. */
export const SERVERS = fileURLToPath(new URL('../../.config/servers/node_modules', import.meta.url))
const isServer = (name: string) => (): boolean => existsSync(join(SERVERS, name))

export const CHROMIUM = process.env['POSTERN_TEST_CHROMIUM'] ?? '/usr/bin/chromium'
export const HAPROXY = '/usr/sbin/haproxy'
export const NGINX = '/usr/sbin/nginx'
export const SLAPD = '/usr/sbin/slapd'
export const RADICALE = '/usr/bin/radicale'
export const DOCKER_REGISTRY = '/usr/bin/docker-registry'
export const APACHE = '/usr/sbin/apache2'
/** JSON-Schema-Test-Suite, as a package of Debian has it. */
export const JSON_SCHEMA_SUITE =
  '/usr/share/perl5/auto/share/dist/Test-JSON-Schema-Acceptance/tests/draft2020-12'
/** The Python that Debian's packages are for. */
export const SYSTEM_PYTHON = '/usr/bin/python3'

/** The first Python that can verify signatures. */
export const python = (): string | undefined =>
  ['python3', '/usr/bin/python3'].find((program) => runs(program, '-c', 'import cryptography'))

/** Whether a tmpfs can be mounted: root in a container often may not. */
function canMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'postern-mount-'))
  const mounted = runs('mount', '-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder)
  if (mounted) runs('umount', folder)
  rmSync(folder, { recursive: true, force: true })
  return mounted
}

export const PARTS = {
  authlib: {
    use: 'the login through Authlib',
    isThere: () => runs(SYSTEM_PYTHON, '-c', 'import authlib, requests'),
  },
  chromium: { use: 'the pages and the code flow in a browser', isThere: () => existsSync(CHROMIUM) },
  curl: { use: 'the commands of the README', isThere: () => runs('curl', '--version') },
  'clients of npm': {
    use: 'the login through clients that others wrote',
    isThere: isServer('express-openid-connect'),
  },
  'docker-registry': { use: 'the recipe for images', isThere: () => existsSync(DOCKER_REGISTRY) },
  'json-server': { use: 'the recipe for it', isThere: isServer('json-server') },
  'flask-dance': {
    use: 'the login through Flask-Dance',
    isThere: () => runs(SYSTEM_PYTHON, '-c', 'import flask_dance'),
  },
  'go-oidc': {
    use: 'the login through go-oidc',
    isThere: () => runs('go', 'version') && existsSync('/usr/share/gocode/src/github.com/coreos/go-oidc'),
  },
  haproxy: { use: 'several nodes behind a balancer', isThere: () => existsSync(HAPROXY) },
  'json-schema-suite': {
    use: 'the official suite of JSON Schema',
    isThere: () => existsSync(JSON_SCHEMA_SUITE),
  },
  spectral: { use: 'the second linter of OpenAPI documents', isThere: isServer('@stoplight/spectral-core') },
  kubectl: {
    use: 'the manifests of several pods',
    isThere: () => runs('kubectl', 'version', '--client'),
  },
  lighttpd: {
    use: 'the recipe for files',
    isThere: () => existsSync('/usr/sbin/lighttpd') && existsSync('/usr/lib/lighttpd/mod_webdav.so'),
  },
  mod_auth_openidc: {
    use: 'the login through Apache',
    isThere: () => existsSync('/usr/lib/apache2/modules/mod_auth_openidc.so'),
  },
  nginx: { use: 'nginx as an upstream', isThere: () => existsSync(NGINX) },
  openssl: { use: 'TLS', isThere: () => runs('openssl', 'version') },
  postgresql: { use: 'a store for several nodes', isThere: () => postgresPrograms() !== undefined },
  prometheus: { use: 'the alerts and the dashboard', isThere: () => runs('prometheus', '--version') },
  promtool: { use: 'the form of the metrics, the alert rules', isThere: () => runs('promtool', '--version') },
  python3: {
    use: 'services of recipes that are written in Python',
    isThere: () => runs('python3', '--version'),
  },
  'python3-cryptography': { use: 'the check of a token in Python', isThere: () => python() !== undefined },
  radicale: { use: 'the recipe for calendars', isThere: () => existsSync(RADICALE) },
  'requests-oauthlib': {
    use: 'the login through requests-oauthlib',
    isThere: () => runs(SYSTEM_PYTHON, '-c', 'import requests_oauthlib'),
  },
  'servers of npm': { use: 'recipes for services that others wrote', isThere: isServer('s3rver') },
  sqlite3: {
    use: 'a foreign program on the store’s file',
    isThere: () => runs('sqlite3', '--version'),
  },
  slapd: { use: 'users in LDAP', isThere: () => existsSync(SLAPD) },
  systemd: { use: 'the systemd unit', isThere: () => runs('systemd-analyze', '--version') },
  verdaccio: { use: 'the recipe for a registry', isThere: isServer('verdaccio') },
  zsh: { use: 'the completion of zsh', isThere: () => runs('zsh', '--version') },
  'a small disk': { use: 'a disk that is full', isThere: canMount },
  'the rights of root': { use: 'files of other users', isThere: () => process.geteuid?.() === 0 },
} as const satisfies Readonly<Record<string, Part>>

export type PartName = keyof typeof PARTS

declare module 'vitest' {
  interface TaskMeta {
    /** What a test needs of the machine. */
    needs?: readonly PartName[]
  }
}

const known = new Map<PartName, boolean>()

export function isMissing(name: PartName): boolean {
  const isThere = known.get(name) ?? PARTS[name].isThere()
  known.set(name, isThere)
  return !isThere
}

/** The options of a test or of a `describe` that needs these parts of the machine. */
export const needing = (...needs: readonly PartName[]) => ({
  skip: process.env['POSTERN_TEST_REQUIRE_ALL'] !== '1' && needs.some(isMissing),
  meta: { needs },
})
