/** Nodes behind a real HAProxy, with the configuration of deploy/nodes. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { between, callData, type Caller, statusesOf } from './callers.ts'
import { freePort } from '../../../support/free-port.ts'
import { HAPROXY } from '../../../support/machine.ts'
import { startCluster, until } from './node-troubles.ts'
import { type StartedNode, startNodes } from './nodes.ts'
import { ROOT } from '../../../support/spawn-postern.ts'
import { ALL_AT_ACME, issueToken } from '../../../support/tokens.ts'

/** Members of `server`. The balancer looks each half a second, and twice. */
export const BEHIND_BALANCER = 'timeouts: { lameDuck: 2s, silence: 1s }, trustedProxies: [127.0.0.1]'

/** deploy/nodes/haproxy.cfg with other ports. */
function configurationOf(port: number, nodes: readonly StartedNode[]): string {
  let text = readFileSync(join(ROOT, 'deploy/nodes/haproxy.cfg'), 'utf8').replace(':8080"', `:${port}"`)
  for (const [at, node] of nodes.entries())
    text = text
      .replace(`127.0.0.1:808${at + 1}`, `127.0.0.1:${node.port}`)
      .replace(`check port 909${at + 1}`, `check port ${new URL(node.adminUrl).port}`)
  return text
}

/** Ends with the function that it resolves with. */
export async function startBalancer(
  port: number,
  nodes: readonly StartedNode[],
): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-balancer-'))
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(file, configurationOf(port, nodes))
  const child = spawn(HAPROXY, ['-db', '-f', file], { stdio: 'ignore' })
  const ended = once(child, 'exit')
  const answers = (): Promise<boolean> =>
    fetch(`http://127.0.0.1:${port}/api`).then(
      ({ status }) => status !== 503,
      () => false,
    )
  await until(answers, 'HAProxy answers')
  return async (): Promise<void> => {
    child.kill('SIGTERM')
    await ended
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Restarts three nodes one after another, again and again, until so many calls were made through the balancer. Answers how
 * often each status came; 0 is a call without an answer.
 */
export async function restartInTurn(calls: number): Promise<{ statuses: object; restarts: number }> {
  const cluster = await startCluster()
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const started = await startNodes(cluster, { count: 3, publicUrl: url, server: BEHIND_BALANCER })
  const nodes = [...started.nodes]
  const closeBalancer = await startBalancer(port, nodes)
  const { access_token: token } = await issueToken({ authUrl: url }, { scope: ALL_AT_ACME })
  const callers: readonly Caller[] = Array.from({ length: 8 }, () => callData(() => url, token))
  const made = (): number => callers.reduce((sum, { answers }) => sum + answers.length, 0)
  let restarts = 0
  try {
    do {
      const at = restarts % nodes.length
      await nodes[at]!.stop()
      nodes[at] = await nodes[at]!.restart()
      restarts += 1
    } while (made() < calls || restarts < nodes.length)
    return { statuses: statusesOf(between(callers, 0)), restarts }
  } finally {
    await Promise.all(callers.map((caller) => caller.stop()))
    await closeBalancer()
    await Promise.all(nodes.map((node) => node.stop()))
    await started.close()
    await cluster.remove()
  }
}
