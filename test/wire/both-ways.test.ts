/** Commands whose operations a running service carries out, or the command itself where none runs (operator/README.md). */
import { hostname, userInfo } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/kernel/clock.ts'
import { FolderKeys } from '../../src/keys/folder-keys.ts'
import { adminRoutes } from '../../src/operator/openapi.ts'
import { auditRecords, type WrittenRecord } from '../support/audit-files.ts'
import { type Ended, runVerb } from '../support/command-line.ts'
import { configFiles } from '../support/config-files.ts'
import { dataFolder } from '../support/data-folder.ts'
import { giveKey } from '../support/ready-key.ts'
import { shellWords } from '../support/shell-words.ts'
import { DEMO } from '../support/spawn-postern.ts'
import { postern } from '../support/start-postern.ts'

interface Row {
  /** Of the operation that is carried out. */
  readonly id: string
  /** What is typed behind `postern`. */
  readonly line: string
  /** What is piped in. */
  readonly input?: string
  /** The exit code. Default: 0. */
  readonly code?: 1 | 2
  /** Each record, as `event outcome`. Default: none. */
  readonly records?: readonly string[]
}

const PASSWORD = 'doras-long-password'

/** Whatever gives is recorded before it is done, too. */
const gives = (event: string): readonly string[] => [`${event} pending`, `${event} success`]
const takes = (event: string): readonly string[] => [`${event} success`]

const ASKED = takes('audit.queried')
const EXPORTED = takes('audit.exported')

const CLIENT = '--kind customer --name Tally --agreement 2026-01-15 --business ACME'

/** A line finds what the lines before it have made. */
const ROWS: readonly Row[] = [
  {
    id: 'addBusiness',
    line: 'business add HOOLI --name Hooli --funds listed --reason asked',
    records: gives('business.added'),
  },
  { id: 'addBusiness', line: 'business add HOOLI --name Hooli', code: 1 },
  { id: 'addBusiness', line: 'business add PIED --name Pied --json', records: gives('business.added') },
  { id: 'addBusiness', line: 'business add BAD --funds some', code: 2 },
  { id: 'showBusiness', line: 'business show HOOLI' },
  { id: 'showBusiness', line: 'business show HOOLY', code: 1 },
  { id: 'listBusinesses', line: 'business list' },
  { id: 'listBusinesses', line: 'business list --limit 2 --json' },
  {
    id: 'editBusiness',
    line: "business edit HOOLI --name 'Hooli Ltd' --address locality=Sydney",
    records: gives('business.changed'),
  },
  { id: 'editBusiness', line: "business edit HOOLI --name 'Hooli Ltd'" },
  { id: 'editBusiness', line: 'business edit ACME --name Other', code: 1 },
  {
    id: 'disableBusiness',
    line: 'business disable PIED --reason closed',
    records: takes('business.disabled'),
  },
  { id: 'disableBusiness', line: 'business disable ACME', code: 1 },
  { id: 'enableBusiness', line: 'business enable PIED --json', records: gives('business.enabled') },

  { id: 'addFund', line: "fund add HOOLI ONE --name 'Fund one'", records: gives('fund.added') },
  { id: 'addFund', line: 'fund add NOWHERE ONE', code: 1 },
  { id: 'showFund', line: 'fund show HOOLI ONE --json' },
  { id: 'listFunds', line: 'fund list HOOLI' },
  { id: 'listFunds', line: 'fund list NOWHERE', code: 1 },
  { id: 'editFund', line: 'fund edit HOOLI ONE --name First --json', records: gives('fund.changed') },
  { id: 'disableFund', line: 'fund disable HOOLI ONE', records: takes('fund.disabled') },
  { id: 'enableFund', line: 'fund enable HOOLI ONE', records: gives('fund.enabled') },

  { id: 'addRole', line: "role add Clerk --scope 'fund.read api1'", records: gives('role.added') },
  { id: 'addRole', line: 'role add Boss --scope fund.raed', code: 2 },
  { id: 'showRole', line: 'role show Clerk' },
  { id: 'listRoles', line: 'role list --all --json' },
  { id: 'editRole', line: 'role edit Clerk --scope fund.read', records: takes('role.changed') },
  { id: 'disableRole', line: 'role disable Clerk', records: takes('role.disabled') },
  { id: 'enableRole', line: 'role enable Clerk', records: gives('role.enabled') },

  {
    id: 'addClient',
    line: `client add tally ${CLIENT} --scope 'openid fund.read' --reason asked`,
    records: gives('client.added'),
  },
  { id: 'addClient', line: `client add tally ${CLIENT} --scope openid`, code: 1 },
  {
    id: 'addClient',
    line: `client add other ${CLIENT} --scope openid --json`,
    records: gives('client.added'),
  },
  { id: 'addClient', line: `client add third ${CLIENT} --business ACNE`, code: 2 },
  {
    id: 'addClient',
    line: 'client add app --kind public --name App --scope openid --redirect-uri https://app.example/back',
    records: gives('client.added'),
  },
  { id: 'showClient', line: 'client show tally' },
  { id: 'showClient', line: 'client show tally --json' },
  { id: 'listClients', line: 'client list --limit 2' },
  { id: 'listClients', line: 'client list --prefix ta --json' },
  {
    id: 'editClient',
    line: 'client edit tally --access-token-lifetime 10m --scope openid',
    // It gives and takes.
    records: gives('client.changed'),
  },
  { id: 'editClient', line: 'client edit tally --scope openid --json' },
  { id: 'editClient', line: 'client edit tally --access-token-lifetime 2d', code: 2 },
  {
    id: 'rotateSecret',
    line: 'client rotate-secret tally --overlap 1h --reason yearly',
    records: gives('client.secret_rotated'),
  },
  { id: 'rotateSecret', line: 'client rotate-secret tally', code: 1 },
  { id: 'rotateSecret', line: 'client rotate-secret app', code: 1 },
  {
    id: 'rotateSecret',
    line: 'client rotate-secret other --overlap 0s --json',
    records: gives('client.secret_rotated'),
  },
  { id: 'disableClient', line: 'client disable other', records: takes('client.disabled') },
  { id: 'enableClient', line: 'client enable other', records: gives('client.enabled') },

  {
    id: 'addUser',
    line: 'user add dora --subject S-dora --customer tally --access ACME=Read-only --claim name=Dora',
    input: `${PASSWORD}\n`,
    records: gives('user.added'),
  },
  { id: 'addUser', line: 'user add eve --access ACME=Nobody', input: `${PASSWORD}\n`, code: 2 },
  { id: 'showUser', line: 'user show dora' },
  { id: 'listUsers', line: 'user list --json' },
  {
    id: 'editUser',
    line: 'user edit dora --access ACME=Administrator --claim email=dora@example.com',
    records: gives('user.changed'),
  },
  { id: 'editUser', line: "user edit dora --access ''", records: takes('user.changed') },
  {
    id: 'setPassword',
    line: 'user set-password dora --json',
    input: `${PASSWORD}-2\n`,
    records: gives('user.password_set'),
  },
  { id: 'setPassword', line: 'user set-password dora', input: 'short\n', code: 2 },
  { id: 'disableUser', line: 'user disable dora', records: takes('user.disabled') },
  { id: 'disableUser', line: 'user disable nobody', code: 1 },
  { id: 'enableUser', line: 'user enable dora', records: gives('user.enabled') },

  { id: 'streamRecords', line: 'audit find --event business.added --reason asked', records: ASKED },
  { id: 'streamRecords', line: 'audit find --user S-dora --changed', records: ASKED },
  { id: 'streamRecords', line: 'audit find --month 2020-03', code: 1, records: ASKED },
  { id: 'streamRecords', line: 'audit find --event busines.added', code: 2 },
  { id: 'streamRecords', line: 'audit find --event role.added --jsonl', records: EXPORTED },
  { id: 'streamRecords', line: 'audit find --event role.removed --json', records: EXPORTED },
  { id: 'streamRecords', line: 'audit find --by nobody --csv', records: EXPORTED },
  { id: 'streamRecords', line: `audit show ${'f'.repeat(32)}`, records: ASKED },
  { id: 'streamRecords', line: 'audit open', records: ASKED },
  { id: 'redactSubject', line: 'audit redact --subject S-dora', code: 2 },
  {
    id: 'redactSubject',
    line: 'audit redact --subject S-nobody --reason asked',
    records: gives('audit.redacted'),
  },
  {
    id: 'redactSubject',
    line: 'audit redact --subject S-none --reason again --json',
    records: gives('audit.redacted'),
  },

  { id: 'removeUser', line: 'user remove dora --reason left', records: takes('user.removed') },
  { id: 'removeUser', line: 'user remove dora', code: 1 },
  { id: 'removeClient', line: 'client remove tally', records: takes('client.removed') },
  { id: 'removeRole', line: 'role remove Clerk --json', records: takes('role.removed') },
  { id: 'removeFund', line: 'fund remove HOOLI ONE', records: takes('fund.removed') },
  { id: 'removeBusiness', line: 'business remove HOOLI', records: takes('business.removed') },

  { id: 'listKeys', line: 'keys list' },
  {
    id: 'rotateKeys',
    line: 'keys rotate --reason planned',
    // Of each algorithm.
    records: [...takes('keys.announced'), ...takes('keys.announced')],
  },
  { id: 'listKeys', line: 'keys list --json' },
  { id: 'rotateKeys', line: 'keys rotate --compromised', code: 2 },
  {
    id: 'rotateKeys',
    line: 'keys rotate --compromised --yes --reason stolen',
    records: takes('keys.compromised'),
  },
  {
    id: 'rotateKeys',
    line: 'keys rotate --compromised --yes --json',
    records: takes('keys.compromised'),
  },
  {
    id: 'rotateKeys',
    line: 'keys rotate --json',
    records: [...takes('keys.announced'), ...takes('keys.announced')],
  },
]

/** What differs from run to run: secrets that are drawn, times, places of records and folders; and who has acted, from where. */
const steady = (text: string): string =>
  text
    .replaceAll(/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replaceAll(/(?<="\w+(?:At|From)": )\d+/g, 'TIME')
    .replaceAll(/(?<![\w-])[\w-]{43}(?![\w-])/g, 'SECRET')
    .replaceAll(/the folder \S+keys/g, 'the folder of the keys')
    .replaceAll(/"writer":"[\w-]+"/g, '"writer":"WRITER"')
    .replaceAll(/"seq":\d+/g, '"seq":0')
    .replaceAll(/"operator":"[^"]+"/g, '"operator":"NAME"')
    .replaceAll(',"address":"127.0.0.1"', '')
    .replaceAll(/operator \S+ (\(says: .*?\))(?: from 127\.0\.0\.1)?/g, 'operator NAME $1')
    .replaceAll(/ +/g, ' ')

/** The part of a record that is the same both ways. What has come over the wire has an address, and another operator. */
function partOf({ event, on, change, outcome, why, values: all, actor }: WrittenRecord): unknown {
  const { operator, ...from } = actor as Readonly<Record<string, unknown>>
  const values = { ...all, 'actor.address': undefined }
  return {
    event,
    on,
    change: steady(JSON.stringify(change ?? {})),
    outcome,
    why,
    values,
    from,
    isNamed: typeof operator === 'string',
  }
}

interface Done extends Ended {
  readonly records: readonly WrittenRecord[]
}

/** Runs every line on a data folder of its own. */
async function runAll(isUp: boolean): Promise<ReadonlyMap<Row, Done>> {
  const data = await dataFolder()
  await giveKey(data)
  // A service makes the other one at its start.
  await new FolderKeys(join(data, 'keys')).create({ algorithm: 'ES256', generation: 1 }, systemClock)
  const file = configFiles({ 'a.yaml': `extends: ${DEMO}\n` })('a.yaml')
  const env = { POSTERN_DATA: data, POSTERN_CONFIG: file }
  const service = isUp ? await postern({ file, data }) : undefined
  const seen = new Set<string>()
  const done = new Map<Row, Done>()
  const records = (): readonly WrittenRecord[] => {
    const fresh = auditRecords({ data, ...(service && { world: service.world }) }).filter(
      ({ writer, seq, actor }) =>
        (actor as { via?: string } | undefined)?.via === 'cli' && !seen.has(JSON.stringify([writer, seq])),
    )
    for (const { writer, seq } of fresh) seen.add(JSON.stringify([writer, seq]))
    return fresh
  }
  for (const row of ROWS) {
    const ended = await runVerb(shellWords(row.line), { env, input: row.input ?? '' })
    done.set(row, { ...ended, records: records() })
  }
  return done
}

describe('C11.5.1 C12.1.7 a command that works with the service and without it', { timeout: 240_000 }, () => {
  const shared = adminRoutes('0.0.0').filter(({ runs }) => runs === 'service or here')

  it.each(shared)(
    'C11.5.1 has lines in the table of this test: $operationId',
    ({ operationId, commands = [] }) => {
      const lines = ROWS.filter(({ id }) => id === operationId).map(({ line }) => line)
      const words = commands.flatMap((command) => command.words)
      expect(
        words.filter((each) => !lines.some((line) => line.startsWith(`${each} `) || line === each)),
      ).toEqual([])
      expect(lines).not.toEqual([])
    },
  )

  it('C12.1.7 prints the same, ends with the same code and leaves the same records both ways', async () => {
    const up = await runAll(true)
    const down = await runAll(false)
    const shown = (done: ReadonlyMap<Row, Done>) =>
      ROWS.map((row) => {
        const { code, stdout, stderr, records } = done.get(row)!
        return {
          line: row.line,
          code,
          stdout: steady(stdout),
          stderr: steady(stderr),
          records: records.map((each) => partOf(each)),
        }
      })
    expect(shown(down)).toEqual(shown(up))
    const ends = ROWS.map((row) => {
      const { code, records } = up.get(row)!
      return [row.line, code, records.map(({ event, outcome }) => `${event} ${String(outcome)}`)]
    })
    expect(ends).toEqual(ROWS.map(({ line, code = 0, records = [] }) => [line, code, records]))
    const names = (done: ReadonlyMap<Row, Done>) => [
      ...new Set(
        [...done.values()].flatMap(({ records }) =>
          records.map(({ actor }) => (actor as { operator?: string }).operator),
        ),
      ),
    ]
    expect(names(up)).toEqual(['admin'])
    expect(names(down)).toEqual([`${userInfo().username}@${hostname()}`])
  })
})
