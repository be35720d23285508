/**
 * A worked example of `kind: module`: the demo's data in a SQLite file. Copy it, and put your own tables in its place.
 * sqlite.yaml beside it serves it; the contract, `postern/backend`, is explained in config/modules.md.
 */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Json, ModuleAnswer, ModuleCall, ModuleContext, ModuleFactory } from 'postern/backend'

interface Options {
  /** The file, relative to this one. Made and filled if it is not there. */
  readonly database: string
  /** What a new file is filled with: records of funds and members, as in demo-data.json. */
  readonly seed: string
}

type Document = { readonly [name: string]: Json | undefined }
type Verb = (call: ModuleCall, tables: Tables, context: ModuleContext) => ModuleAnswer | Promise<ModuleAnswer>

/** By method and action: what is not here cannot be asked, since the configuration names the actions. */
const VERBS: Readonly<Record<string, Verb>> = {
  'GET fund-data/fund-list': ({ business }, tables) => {
    const summary = ({ Code, Name, Status, LegalEntityType, ABN, Tags }: Document): Document => ({
      Code,
      Name,
      Status,
      LegalEntityType,
      ABN,
      Tags,
    })
    return listed('FundSummaries', tables.list('funds', business).map(summary))
  },
  'POST fund-data/fund-create': async (call, tables, context) => {
    const given = documentOf(call)
    const { Code, Name } = given
    if (typeof Code !== 'string' || typeof Name !== 'string') return refused('Code and Name are required.')
    const document = merged(NEW_FUND, given)
    if (!tables.insert('funds', call.business, Code, document)) return refused('Code is taken.')
    await context.addFund(call.business, Code)
    return DONE
  },
  'GET fund-data/fund-detail': ({ business, fund = '' }, tables) =>
    read(tables.find('funds', business, fund)),
  'POST fund-data/fund-detail': (call, tables) =>
    change(tables, 'funds', call.business, call.fund ?? '', call),
  'GET member-data/member-list': (call, tables) => {
    const summary = ({ MemberId, DisplayName, Status, MemberNumber }: Document): Document => ({
      MemberId,
      DisplayName,
      Status,
      MemberNumber,
    })
    return listed('MemberSummaries', tables.list('members', placeOf(call)).map(summary))
  },
  'GET member-data/member-detail/{memberId}': (call, tables) => {
    const member = tables.find('members', placeOf(call), call.params['memberId'] ?? '')
    // Version 2 of the action added a field.
    return read(call.version < 2 ? member && { ...member, CommunicationPreferences: undefined } : member)
  },
  'POST member-data/member-detail/{memberId}': (call, tables) =>
    change(tables, 'members', placeOf(call), call.params['memberId'] ?? '', call),
}

/** What the key of a record is called: it names the record and so never changes. */
const KEYS = { funds: 'Code', members: 'MemberId' } as const
type Table = keyof typeof KEYS

const DONE: ModuleAnswer = { body: { kind: 'value', value: {} } }
const NOTHING: ModuleAnswer = { status: 404 }

const refused = (message: string): ModuleAnswer => ({
  status: 400,
  body: { kind: 'errors', errors: [{ code: 'API_BAD_REQUEST', message }] },
})

const read = (document: Document | undefined): ModuleAnswer =>
  document === undefined ? NOTHING : { body: { kind: 'value', value: document } }

const listed = (name: string, items: readonly Document[]): ModuleAnswer => ({
  body: { kind: 'value', value: { [name]: items, TotalCount: items.length } },
})

const placeOf = ({ business, fund = '' }: ModuleCall): string => `${business}/${fund}`

/** The configuration's schemas have checked the body already; that it is an object is for the compiler. */
const documentOf = ({ body }: ModuleCall): Document =>
  body.kind === 'value' && isDocument(body.value) ? body.value : {}

const isDocument = (value: Json | undefined): value is Document =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function change(tables: Tables, table: Table, place: string, key: string, call: ModuleCall): ModuleAnswer {
  const document = tables.find(table, place, key)
  if (document === undefined) return NOTHING
  const changes = documentOf(call)
  const problem = misfit(document, changes)
  if (problem !== undefined) return refused(problem)
  const name = KEYS[table]
  if (name in changes && changes[name] !== key) return refused(`${name} cannot be changed.`)
  tables.update(table, place, key, merged(document, changes))
  return DONE
}

/** The first field of `changes` that the record does not have, or has as another type. */
function misfit(document: Document, changes: Document): string | undefined {
  for (const [name, value] of Object.entries(changes)) {
    if (!Object.hasOwn(document, name)) return `${name} is not a field of this record.`
    const old = document[name]
    if (old === null || value === null) continue
    if (typeof old !== typeof value || Array.isArray(old) !== Array.isArray(value))
      return `${name} has another type.`
    const inner = isDocument(old) && isDocument(value) ? misfit(old, value) : undefined
    if (inner !== undefined) return inner
  }
  return undefined
}

function merged(document: Document, changes: Document): Document {
  const entries = Object.entries(changes).map(([name, value]): [string, Json | undefined] => {
    const old = Object.hasOwn(document, name) ? document[name] : undefined
    return [name, isDocument(old) && isDocument(value) ? merged(old, value) : value]
  })
  return { ...document, ...Object.fromEntries(entries) }
}

const NEW_FUND: Document = {
  Status: 'Establishing',
  LegalEntityType: null,
  ABN: null,
  Tags: [],
  OpenToNewMembers: false,
}

/** Both tables hold JSON documents, apart by place: the business of a fund, the fund of a member. */
class Tables {
  readonly #database: DatabaseSync

  constructor(file: string) {
    this.#database = new DatabaseSync(file, { timeout: 1000 })
    this.#database.exec(`PRAGMA journal_mode = WAL;
      CREATE TABLE IF NOT EXISTS funds (place TEXT, key TEXT, document TEXT, PRIMARY KEY (place, key)) STRICT;
      CREATE TABLE IF NOT EXISTS members (place TEXT, key TEXT, document TEXT, PRIMARY KEY (place, key)) STRICT`)
  }

  list(table: Table, place: string): Document[] {
    const rows = this.#database.prepare(`SELECT document FROM ${table} WHERE place = ? ORDER BY rowid`)
    return rows.all(place).map(({ document }) => JSON.parse(String(document)) as Document)
  }

  find(table: Table, place: string, key: string): Document | undefined {
    const row = this.#database
      .prepare(`SELECT document FROM ${table} WHERE place = ? AND key = ?`)
      .get(place, key)
    return row && (JSON.parse(String(row['document'])) as Document)
  }

  /** False if the key is taken. */
  insert(table: Table, place: string, key: string, document: Document): boolean {
    const insert = this.#database.prepare(`INSERT OR IGNORE INTO ${table} VALUES (?, ?, ?)`)
    return insert.run(place, key, JSON.stringify(document)).changes === 1
  }

  update(table: Table, place: string, key: string, document: Document): void {
    this.#database
      .prepare(`UPDATE ${table} SET document = ? WHERE place = ? AND key = ?`)
      .run(JSON.stringify(document), place, key)
  }

  close(): void {
    this.#database.close()
  }
}

interface Seed {
  readonly collections: Readonly<Record<Table, { readonly records: Readonly<Record<string, Document[]>> }>>
}

/** Does nothing to records that are there. */
function fill(tables: Tables, { collections }: Seed): void {
  for (const table of ['funds', 'members'] as const)
    for (const [place, documents] of Object.entries(collections[table].records))
      for (const document of documents) {
        const key = document[KEYS[table]]
        if (typeof key === 'string') tables.insert(table, place, key, document)
      }
}

const createModule: ModuleFactory<Options> = ({ database, seed }, context) => {
  // Opened by the first call: `postern check` makes a module too, and should leave no file behind.
  let opened: Tables | undefined
  const open = (): Tables => {
    const tables = new Tables(resolve(import.meta.dirname, database))
    fill(tables, JSON.parse(readFileSync(resolve(import.meta.dirname, seed), 'utf8')) as Seed)
    return tables
  }
  return {
    answer: (call) => {
      const verb = VERBS[`${call.method} ${call.action}`]
      return verb ? verb(call, (opened ??= open()), context) : NOTHING
    },
    close: () => opened?.close(),
  }
}

export default createModule
