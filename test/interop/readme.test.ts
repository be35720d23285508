import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { ROOT } from '../support/spawn-postern.ts'

/** The README and the tour are run as a reader would: their commands typed into bash, in order, and what they print compared. */

const pageOf = (name: string): string => readFileSync(join(ROOT, name), 'utf8')
const README = pageOf('README.md')

interface Block {
  readonly heading: string
  readonly command: string
  /** What the page shows of its output; `…` stands for anything. */
  readonly output: string | undefined
}

function readBlocks(page: string): Block[] {
  const headings = [...page.matchAll(/^## (.*)$/gm)]
  const fence = /^```sh\n(.*?)\n```(?:\n\n```(?:json|xml|text)\n(.*?)\n```)?$/gms
  return [...page.matchAll(fence)].map(({ 1: command = '', 2: output, index }) => ({
    heading: headings.findLast((heading) => heading.index < index)?.[1] ?? '',
    command,
    output,
  }))
}

/** Typed into a terminal of its own, which it keeps. */
const isTerminal = ({ command }: Block): boolean =>
  /\bnpm (?:ci|start|test|run upstream)\b|\bpostern -- serve\b/.test(command)
const blocksOf = (name: string): readonly Block[] => readBlocks(pageOf(name))
const typedOf = (name: string): readonly Block[] => blocksOf(name).filter((block) => !isTerminal(block))

const ports = { POSTERN_PORT: 0, POSTERN_ADMIN_PORT: 0, UPSTREAM_PORT: 0 }
let data: string

beforeAll(async () => {
  data = await mkdtemp(join(tmpdir(), 'postern-readme-'))
  for (const name of ['POSTERN_PORT', 'POSTERN_ADMIN_PORT', 'UPSTREAM_PORT'] as const)
    ports[name] = await freePort()
})
afterAll(() => rm(data, { recursive: true, force: true }))

const environment = (): NodeJS.ProcessEnv => ({
  ...process.env,
  ...Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)])),
  POSTERN_DATA: data,
  UPSTREAM_URL: `http://127.0.0.1:${ports.UPSTREAM_PORT}`,
})

const withOurPorts = (command: string): string =>
  command
    .replaceAll('127.0.0.1:8080', `127.0.0.1:${ports.POSTERN_PORT}`)
    .replaceAll('127.0.0.1:9090', `127.0.0.1:${ports.POSTERN_ADMIN_PORT}`)

/**
 * What one types into a terminal and leaves running, in a process group of its own, as terminals do. It is stopped by `stop`,
 * and if it did not come to listen: else it would later take the port of another test.
 */
async function inTerminal(command: string, port: number): Promise<{ stop(): Promise<void> }> {
  const child = spawn('bash', ['-c', command], {
    cwd: ROOT,
    env: environment(),
    detached: true,
    stdio: 'ignore',
  })
  const exited = once(child, 'exit')
  const stop = async (): Promise<void> => {
    process.kill(-(child.pid ?? Number.NaN), 'SIGTERM')
    await exited
    await untilFree(port)
  }
  const failed = exited.then(() => Promise.reject(new Error(`it ended: ${command}`)))
  failed.catch(() => undefined)
  try {
    await Promise.race([untilListening(port), failed])
  } catch (error) {
    if (child.exitCode === null && child.signalCode === null) await stop()
    throw error
  }
  return { stop }
}

const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve((socket.destroy(), true))).once('error', () => resolve(false))
  })

/** The first `npm start` makes the bundle, which takes a busy machine half a minute. */
const POLL = { timeout: 100_000, interval: 25 }
const untilListening = (port: number): Promise<void> => expect.poll(() => accepts(port), POLL).toBe(true)
const untilFree = (port: number): Promise<void> => expect.poll(() => accepts(port), POLL).toBe(false)

const MARK = '\x1e'

/** The blocks in one shell, so that what one sets the next one has. Answers what each wrote. */
async function typed(blocks: readonly Block[]): Promise<string[]> {
  const script = blocks.map(({ command }) => `${withOurPorts(command)}\nprintf '${MARK}'`).join('\n')
  const { stdout } = await promisify(execFile)('bash', ['--norc', '-u', '-c', script], {
    cwd: ROOT,
    env: { ...environment(), PATH: process.env['PATH'] },
    maxBuffer: 1024 ** 3,
  })
  return stdout.split(MARK).slice(0, -1)
}

const escapeText = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
const pattern = (shown: string): RegExp =>
  new RegExp(`^${shown.split('…').map(escapeText).join('.*?')}$`, 's')

function expectShown(blocks: readonly Block[], outputs: readonly string[]): void {
  for (const [at, { command, output }] of blocks.entries()) {
    if (output === undefined) continue
    expect(outputs[at]?.trimEnd(), command).toMatch(pattern(output))
  }
}

const OWN = 'Your own service in five minutes'
/** With a folder of this test in place of `my`, its data in it, and our service in place of the reader's. */
const inFolder = (command: string, folder: string): string =>
  `export POSTERN_DATA=\n${command}`
    .replaceAll(/\bmy\b/g, folder)
    .replaceAll('127.0.0.1:9000', `127.0.0.1:${ports.UPSTREAM_PORT}`)

const UPSTREAM = 'The same data in a service behind it'
const TOUR = typedOf('config/tour.md')
const demoTour = TOUR.filter(({ heading }) => heading !== UPSTREAM)
const SETTING_OUT = /token\.json|^API=|^MEMBER=/m

const scriptsOf = (): Record<string, string> =>
  (JSON.parse(pageOf('package.json')) as { scripts: Record<string, string> }).scripts

describe('README.md', () => {
  it('has a first screen of 25 lines: what it is, how it is started, a call that is allowed and one that is not', () => {
    const screen = README.split('\n').slice(0, 25).join('\n')
    expect(screen).toMatch(/^# Postern\n/)
    expect(screen.match(/^- /gm)).toHaveLength(4)
    expect(screen.match(/^```sh\n.*?^```$/gms)).toHaveLength(2)
    expect(screen).toMatch(/ try .*\/b\/ACME\/.* try .*\/b\/GLOBEX\//s)
  })

  it('names commands that package.json has', () => {
    expect(
      blocksOf('README.md')
        .filter(isTerminal)
        .map(({ command }) => command.split('\n')[0]),
    ).toEqual([
      'npm ci && npm start',
      'npm run -s postern -- init my --upstream http://127.0.0.1:9000 --business ACME --user alice',
      'npm ci && npm test',
    ])
    for (const name of ['start', 'test', 'postern']) expect(scriptsOf()[name]).toBeDefined()
  })

  it('takes the reader to a first call and round the demo, and every answer is as shown', async () => {
    const demo = await inTerminal('npm start', ports.POSTERN_PORT)
    try {
      const blocks = typedOf('README.md').filter(({ heading }) => heading !== OWN)
      expectShown(blocks, await typed(blocks))
    } finally {
      await demo.stop()
    }
  })

  it('C10 serves a configuration of the reader before a service of theirs', async () => {
    const own = blocksOf('README.md')
      .filter(({ heading }) => heading === OWN)
      .map(({ command, ...block }) => ({ ...block, command: inFolder(command, join(data, 'my')) }))
    const [setUp, ...calls] = own
    const upstream = await inTerminal('npm run upstream', ports.UPSTREAM_PORT)
    const gateway = await inTerminal(setUp?.command ?? 'false', ports.POSTERN_PORT)
    try {
      expect(calls).toHaveLength(1)
      expectShown(calls, await typed(calls))
    } finally {
      await gateway.stop()
      await upstream.stop()
    }
  })

  it('C10 serves it by the command that init prints in a clone', async () => {
    const folder = join(data, 'printed')
    const init = ['run', '-s', 'postern', '--', 'init', folder, '--business', 'ACME']
    const { stderr } = await promisify(execFile)('npm', init, { cwd: ROOT, env: environment() })
    const [printed = ''] = /(?<=^Serve it:\n {2}).+/m.exec(stderr) ?? []
    expect(printed).toBe(`npm run -s postern -- serve ${folder}/postern.yaml`)
    const gateway = await inTerminal(printed, ports.POSTERN_PORT)
    try {
      const url = `http://127.0.0.1:${ports.POSTERN_PORT}/api/1.0/b/ACME/fund-data/fund-list`
      expect((await fetch(url)).status).toBe(401)
    } finally {
      await gateway.stop()
    }
  })

  it('links to files that are there', () => {
    const links = [...README.matchAll(/\]\(([^)#]+)/g)].map(([, link = '']) => link)
    expect(links.filter((link) => !existsSync(join(ROOT, link)))).toEqual([])
  })
})

describe('config/tour.md', () => {
  it('tells what to type for the upstream as package.json has it', () => {
    expect(
      blocksOf('config/tour.md')
        .filter(isTerminal)
        .map(({ command }) => command),
    ).toEqual(['npm run upstream', 'POSTERN_CONFIG=config/upstream.yaml npm start'])
    expect(scriptsOf()['upstream']).toBeDefined()
  })

  it('takes the reader round the demo world, and every answer is as shown', async () => {
    const demo = await inTerminal('npm start', ports.POSTERN_PORT)
    try {
      const outputs = await typed(demoTour)
      expectShown(demoTour, outputs)
      const version = demoTour.findIndex(
        ({ command }) => command.endsWith('$MEMBER') && command.startsWith('MEMBER'),
      )
      expect(outputs[version]).not.toContain('CommunicationPreferences')
      const [first, ...others] =
        outputs
          .find((output) => output.includes('404'))
          ?.trim()
          .split('\n') ?? []
      expect(others).toEqual([first, first])
    } finally {
      await demo.stop()
    }
  })

  it('takes the same way with the data behind an upstream', async () => {
    const upstream = await inTerminal('npm run upstream', ports.UPSTREAM_PORT)
    const gateway = await inTerminal('POSTERN_CONFIG=config/upstream.yaml npm start', ports.POSTERN_PORT)
    try {
      expectShown(TOUR, await typed(TOUR))
    } finally {
      await gateway.stop()
      await upstream.stop()
    }
  })

  it('promises that a token outlives the change to the upstream, since the keys are kept', async () => {
    const demo = await inTerminal('npm start', ports.POSTERN_PORT)
    const settingOut = demoTour.filter(({ command }) => SETTING_OUT.test(command))
    const keep: Block = { heading: '', command: 'echo "$AUTH"', output: undefined }
    const auth = await typed([...settingOut.slice(0, 2), keep]).then(
      (outputs) => outputs.at(-1)?.trim() ?? '',
    )
    await demo.stop()
    const upstream = await inTerminal('npm run upstream', ports.UPSTREAM_PORT)
    const gateway = await inTerminal('POSTERN_CONFIG=config/upstream.yaml npm start', ports.POSTERN_PORT)
    try {
      const url = `http://127.0.0.1:${ports.POSTERN_PORT}/api/1.0/b/ACME/fund-data/fund-list`
      const response = await fetch(url, {
        headers: { Authorization: auth.replace(/^Authorization: /, '') },
      })
      expect(response.status).toBe(200)
    } finally {
      await gateway.stop()
      await upstream.stop()
    }
  })
})
