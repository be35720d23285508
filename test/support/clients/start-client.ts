import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { APACHE, SYSTEM_PYTHON, type PartName } from '../machine.ts'
import { startProgram, type Program } from '../recipes/programs.ts'

/** A client that others wrote, in a program of this folder, and what Postern must know of it. */
export interface ClientProgram {
  readonly file: string
  readonly needs: readonly PartName[]
  readonly program: (file: string) => Omit<Program, 'environment'>
  /** Where a login begins. */
  readonly login: string
  readonly callback: string
  readonly strictRfc6749?: boolean
  /** Of the client in Postern. */
  readonly requirePkce?: boolean
  readonly requireBinding?: boolean
  readonly answerScope?: 'asked'
  /** The client has no secret, and its keys at `/jwks.json`. */
  readonly profile?: 'fapi2'
  /** Part of its last page; the user's name if not given. */
  readonly shows?: string
}

const ownFile = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

const node = (file: string): Program => ({
  command: process.execPath,
  args: ['--import', ownFile('packages.mjs'), ownFile(file)],
})
const python = (file: string): Program => ({ command: SYSTEM_PYTHON, args: [ownFile(file)] })

/** Compiles it first: Debian's packages of Go are sources. */
const go = (file: string): Program => ({
  command: '/bin/sh',
  args: [
    '-c',
    'GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE="$FOLDER/cache" go build -o "$FOLDER/client" "$0" && exec "$FOLDER/client"',
    ownFile(file),
  ],
})

const ofNode = { needs: ['clients of npm'], program: node, login: '/login', callback: '/callback' } as const

export const CLIENTS: Readonly<Record<string, ClientProgram>> = {
  'openid-client 6': { ...ofNode, file: 'openid-client-6.mjs' },
  'openid-client 6 with FAPI 2.0': { ...ofNode, file: 'openid-client-6-fapi2.mjs', profile: 'fapi2' },
  'openid-client 5': { ...ofNode, file: 'openid-client-5.mjs', strictRfc6749: true },
  'Auth.js': { ...ofNode, file: 'auth-js.mjs', login: '/auth/signin', callback: '/auth/callback/postern' },
  'express-openid-connect': { ...ofNode, file: 'express-openid-connect.mjs' },
  'passport-openidconnect': {
    ...ofNode,
    file: 'passport-openidconnect.mjs',
    requirePkce: false,
  },
  'simple-oauth2': { ...ofNode, file: 'simple-oauth2.mjs' },
  grant: {
    ...ofNode,
    file: 'grant.mjs',
    login: '/connect/postern',
    callback: '/connect/postern/callback',
  },
  Authlib: { ...ofNode, file: 'authlib-client.py', needs: ['authlib'], program: python },
  'requests-oauthlib': {
    ...ofNode,
    file: 'requests-oauthlib-client.py',
    needs: ['requests-oauthlib'],
    program: python,
    requireBinding: false,
    answerScope: 'asked',
  },
  'Flask-Dance': {
    ...ofNode,
    file: 'flask-dance-client.py',
    needs: ['flask-dance'],
    program: python,
    login: '/login/postern',
    callback: '/login/postern/authorized',
    requireBinding: false,
    answerScope: 'asked',
  },
  'go-oidc': {
    ...ofNode,
    file: 'go-oidc-client.go',
    needs: ['go-oidc'],
    program: go,
    requireBinding: false,
  },
  mod_auth_openidc: {
    ...ofNode,
    file: 'mod_auth_openidc.conf',
    needs: ['mod_auth_openidc'],
    program: (file) => ({ command: APACHE, args: ['-f', ownFile(file), '-DFOREGROUND'] }),
    login: '/',
    // Apache gives the answer of the API as it is.
    shows: '"FundSummaries"',
  },
}

/** What a program is told of the Postern that it logs in at. */
export interface Place {
  readonly port: number
  readonly issuer: string
  readonly baseUrl: string
}

/** Starts the client; its settings come from its environment. */
export function startClient({ file, program }: ClientProgram, place: Place): ReturnType<typeof startProgram> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-client-'))
  const environment = {
    PORT: String(place.port),
    ORIGIN: `http://127.0.0.1:${place.port}`,
    ISSUER: place.issuer,
    FUNDS: `${place.baseUrl}/api/1.0/b/ACME/fund-data/fund-list`,
    USERINFO: `${place.baseUrl}/api/1.0/u/connect/userinfo`,
    FOLDER: folder,
  }
  const cleanUp = (): void => rmSync(folder, { recursive: true, force: true })
  return startProgram({ ...program(file), environment, cleanUp }, place.port)
}
