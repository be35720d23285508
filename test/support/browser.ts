import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium, type BrowserContext, type Page } from 'playwright-core'
import { CHROMIUM } from './machine.ts'

const ARGUMENTS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

export interface OpenedBrowser {
  readonly context: BrowserContext
  /** The folder of its profile. */
  readonly profile: string
  readonly close: () => Promise<void>
}

export interface BrowserOptions {
  readonly javaScriptEnabled?: boolean
  readonly colorScheme?: 'light' | 'dark'
  readonly viewport?: { readonly width: number; readonly height: number }
}

/** A Chromium with a new, empty profile; removed when it is closed. */
export async function openBrowser(options: BrowserOptions = {}): Promise<OpenedBrowser> {
  const profile = await mkdtemp(join(tmpdir(), 'postern-browser-'))
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: CHROMIUM,
    args: ARGUMENTS,
    ...options,
  })
  context.setDefaultTimeout(10_000)
  return {
    ...{ context, profile },
    close: async () => {
      await context.close()
      await rm(profile, { recursive: true, force: true, maxRetries: 3 })
    },
  }
}

export interface SharedBrowser {
  /** A page of a browser that nobody has used: no cookies, no history. */
  readonly page: (options?: BrowserOptions) => Promise<Page>
  readonly close: () => Promise<void>
}

/** One Chromium for many people, which costs a start less for each. It keeps no profile. */
export async function openSharedBrowser(): Promise<SharedBrowser> {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ARGUMENTS })
  return {
    page: async (options) => {
      const context = await browser.newContext(options)
      context.setDefaultTimeout(10_000)
      return context.newPage()
    },
    close: () => browser.close(),
  }
}

export interface ClientPage {
  readonly origin: string
  /** What its callback was given last, by query or by form. */
  readonly received: () => URLSearchParams
  /** How often it was called by POST. */
  readonly posts: () => number
  readonly close: () => Promise<void>
}

/** The client's side of a browser flow: a page that remembers what it was sent. */
export async function openClientPage(): Promise<ClientPage> {
  let received = new URLSearchParams()
  let posts = 0
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const url = new URL(request.url ?? '/', 'http://client')
      if (request.method === 'POST') posts += 1
      if (url.pathname === '/callback')
        received =
          request.method === 'POST' ? new URLSearchParams(Buffer.concat(chunks).toString()) : url.searchParams
      response.setHeader('Content-Type', 'text/html')
      response.end(`<!doctype html><title>The client</title><h1>The client at ${url.pathname}</h1>`)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    origin: `http://127.0.0.1:${port}`,
    received: () => received,
    posts: () => posts,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
