/** `postern audit verify` of a trail that a service has written (C12.4.6). */
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { CREATE, JSON_BODY, NEW_FUND } from '../../support/audited-calls.ts'
import { runVerb } from '../../support/command-line.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { eventually } from '../../support/eventually.ts'
import { bearer, send } from '../../support/requests.ts'
import { postern } from '../../support/start-postern.ts'
import { ALL_AT_ACME, issueToken } from '../../support/tokens.ts'
import { withAudit } from '../../support/with-audit.ts'

/** A copy of the trail of a service that made a change, and its log as a file. */
async function recordedTrail() {
  const service = await postern({
    change: (loaded) => withAudit(loaded, { anchors: [{ log: { every: 1 } }] }),
  })
  const { access_token: token } = await issueToken(service, { scope: ALL_AT_ACME })
  const headers = { ...bearer(token), ...JSON_BODY }
  expect((await send(service, { method: 'POST', target: CREATE, headers, body: NEW_FUND })).status).toBe(200)
  const anchorsBehind = (): string[] => {
    const lines = service.logLines()
    return lines.slice(lines.findIndex((line) => line.includes('fund-create'))).filter(isAnchor)
  }
  await eventually(() => expect(anchorsBehind()).not.toEqual([]))
  const folder = await dataFolder()
  const trail = join(folder, 'trail')
  cpSync(join(service.data, 'audit'), trail, { recursive: true })
  const log = join(folder, 'postern.log')
  writeFileSync(log, service.logLines().join('\n'))
  return { trail, log }
}

const isAnchor = (line: string): boolean => line.includes('audit_anchor')

const segmentsOf = (trail: string): string[] =>
  readdirSync(trail, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.\d+\.jsonl$/.test(name))
    .map((name) => join(trail, name))

describe('C12.4.6 postern audit verify', () => {
  it('C12.4.6 ends with 0 where the trail is whole, and says until when it is signed and anchored', async () => {
    const { trail, log } = await recordedTrail()
    const plain = await runVerb(['audit', 'verify', trail])
    expect(plain).toMatchObject({ code: 0, stderr: '' })
    expect(plain.stdout).toMatch(/the trail is whole\n[\s\S]*signed until [\s\S]*only an anchor tells/)
    const anchored = await runVerb(['audit', 'verify', trail, '--anchor', log])
    expect(anchored.code).toBe(0)
    expect(anchored.stdout).toMatch(/anchored until \d{4}-/)
    const { stdout } = await runVerb(['audit', 'verify', trail, '--json'])
    expect(stdout).toContain('"whole": true')
  })

  it('C12.4.6 ends with 1 where a byte was changed, and names the file and the line', async () => {
    const { trail } = await recordedTrail()
    const [segment = ''] = segmentsOf(trail).filter((path) =>
      readFileSync(path, 'utf8').includes('fund-create'),
    )
    const text = readFileSync(segment, 'utf8')
    const line = text.split('\n').findIndex((each) => each.includes('fund-create')) + 1
    writeFileSync(segment, text.replace('fund-create', 'fund-delete'))
    const { code, stdout } = await runVerb(['audit', 'verify', trail])
    expect(code).toBe(1)
    expect(stdout).toContain('the trail was tampered with')
    expect(stdout).toContain(`.1.jsonl:${line}  `)
  })

  it('C12.4.6 ends with 2 where there is no trail to read', async () => {
    const { code, stderr } = await runVerb(['audit', 'verify', join(await dataFolder(), 'nothing')])
    expect(code).toBe(2)
    expect(stderr).toMatch(/^postern: /)
  })
})
