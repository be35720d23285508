/**
 * Makes the bundle in `dist`: the programs of `src` and their dependencies, as JavaScript. Starting it takes three quarters
 * of the processor time of the sources, and it holds less memory: there are fewer modules, no comments, and one byte a
 * character.
 *
 * - Every program is at the place of its source: `src/state/stores/sqlite/sqlite-thread.ts` becomes
 *   `dist/state/stores/sqlite/sqlite-thread.js`. What several of them use is in `dist/parts`. What is imported by `import()` is a
 *   part too, and read when it is needed. The threads that each service starts are one file each.
 * - In every module `import.meta.url` is what it would be at the place of its source. So it finds the files beside its source,
 *   the other programs, package.json and the demo.
 * - Lines are not joined and names are kept. Maps of the lines lie beside, for stacks: src/operate/watch/stack-lines.ts reads them.
 */
import { cpSync, existsSync, globSync, mkdirSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type OutputOptions, type Plugin, rolldown } from 'rolldown'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SRC = join(ROOT, 'src')
const DIST = join(ROOT, 'dist')
const MAIN = 'main.js'

/**
 * By their place without extension: the command line, and what `exports` of package.json offers. The others are for tests, which
 * start the service of the bundle in their own process with a clock of theirs (from-bundle.ts).
 */
export const ENTRIES: readonly string[] = [
  ...['main', 'base/contracts/calls/module', 'base/contracts/people/people-module', 'serve/start/explainer'],
  ...['serve/start/service', 'operate/settings/configuration', 'serve/start/settings', 'cli/command-line'],
  ...['operate/settings/check-configuration'],
  ...[
    'base/kernel/faults',
    'identity/keys/verify/signatures',
    'base/config/problems',
    'gateway/backends/memory/memory',
    'gateway/server/exchange',
  ],
]

/** Leaves out the files of an extension that was deleted. */
const present = (places: readonly string[]): readonly string[] =>
  places.filter((place) => existsSync(join(SRC, `${place}.ts`)))

/**
 * Programs of threads that each service starts. Each is one file: to find its modules takes a thread longer than to run them.
 * The other threads share the parts, since the package would grow by a tenth.
 */
const WHOLE: readonly string[] = present([
  'extensions/audit/write/audit-thread',
  'state/stores/sqlite/sqlite-thread',
])

/**
 * Modules that tests of attacks play against without a service, by their place. One program offers them all, since each
 * further entry would cut the parts of the others smaller.
 */
export const OFFERED: readonly string[] = [
  ...[
    'gateway/backends/forward/auth/token-credentials',
    'gateway/backends/forward/forwarding',
    'gateway/backends/forward/http',
    'gateway/backends/forward/request',
    'gateway/backends/forward/response/response',
  ],
  ...[
    'base/config/problems',
    'base/config/schema',
    'base/config/scopes/catalogue',
    'base/config/scopes/scope-token',
    'base/config/tree',
    'base/config/validate',
  ],
  ...['base/contracts/records/audit', 'base/contracts/people/people', 'base/contracts/people/places'],
  ...[
    'identity/directory/editors/editors',
    'identity/directory/records/people',
    'identity/directory/records/places',
    'identity/directory/records/schema',
  ],
  ...['gateway/conversion/answers', 'gateway/conversion/bodies', 'gateway/decide/token-check'],
  ...[
    'base/http/head/accept',
    'base/http/head/addresses',
    'base/http/body/body-schema',
    'base/http/body/form',
    'base/http/head/header-text',
    'base/http/body/json',
    'base/http/body/pieces',
    'base/http/head/query',
    'base/http/body/read-body',
    'base/http/head/reference',
    'base/http/head/request-target',
    'base/http/xml/decode',
    'base/http/xml/plain-document',
    'base/http/xml/plain-read',
    'base/http/xml/plain-write',
    'base/http/xml/read',
    'base/http/xml/syntax',
  ],
  ...[
    'identity/tokens/claims',
    'identity/guessing/guessing',
    'identity/guessing/lockouts',
    'identity/identity',
    'identity/dependencies/logouts',
    'identity/dependencies/schema',
    'identity/stored/families',
    'identity/stored/own-cookies',
    'identity/stored/token-revoker',
  ],
  ...[
    'base/kernel/audit-events',
    'base/kernel/clean-text',
    'base/kernel/clock',
    'base/kernel/faults',
    'base/kernel/store-budget',
    'base/kernel/thrown',
  ],
  ...[
    'identity/keys/issuers/issuers-schema',
    'identity/keys/signing/key-place',
    'identity/keys/verify/algorithms',
    'identity/keys/verify/signatures',
    'identity/keys/verify/token-verifier',
  ],
  ...['gateway/server/public-listener'],
  ...['serve/start/token-authorities'],
  ...[
    'state/stores/feed/change-feed',
    'state/stores/sqlite/memory',
    'state/stores/open-store',
    'extensions/postgres/schema',
    'extensions/postgres/link',
    'extensions/postgres/migrations',
    'extensions/postgres/shared-parts',
    'extensions/postgres/shared-turns',
    'extensions/postgres/store',
    'state/stores/feed/revocations',
    'state/stores/sqlite/sqlite',
    'state/stores/link/store-error',
  ],
  ...[
    'gateway/upstream/connection',
    'gateway/upstream/pool',
    'gateway/upstream/reader',
    'gateway/upstream/response-parser',
    'gateway/upstream/socket',
  ],
  ...['operate/watch/log/redact'],
]

/** The program that offers them, below `dist`, and the name by which it offers a module. */
export const OFFERS = 'offered-to-tests'
export const offeredName = (place: string): string => place.replaceAll(/[^a-z]/g, '_')

const offers: Plugin = {
  name: 'offers',
  resolveId: (id) => (id === OFFERS ? id : undefined),
  load: (id) =>
    id === OFFERS
      ? present(OFFERED)
          .map(
            (place) => `export * as ${offeredName(place)} from ${JSON.stringify(join(SRC, `${place}.ts`))}`,
          )
          .join('\n')
      : undefined,
}

const placeOf = (source: string): string => relative(SRC, source).replace(/\.ts$/, '')

/** Entries, as they are given to the bundler. */
const fromPlaces = (places: readonly string[]): Record<string, string> =>
  Object.fromEntries(places.map((place) => [place, join(SRC, `${place}.ts`)]))

/**
 * The programs that Postern starts beside its main one are entries too, but for those that are built by themselves. Each program
 * tells the lines of the sources.
 */
function programs(): Plugin {
  const found = new Set(Object.values(fromPlaces(['main', ...WHOLE])))
  const first = `import ${JSON.stringify(join(SRC, 'operate/watch/stack-lines.ts'))};`
  return {
    name: 'programs',
    transform: {
      filter: { id: /\/src\/.*\.ts$/ },
      handler(code, id) {
        for (const [, name = ''] of code.matchAll(/\bprogramBeside\(import\.meta\.url, '([^']+)'/g)) {
          const program = join(dirname(id), `${name}.ts`)
          found.add(program)
          if (!WHOLE.includes(placeOf(program)))
            this.emitFile({ type: 'chunk', id: program, fileName: `${placeOf(program)}.js` })
        }
        // Behind `#!`, and on the line that is there: the lines stay what they were.
        return found.has(id) ? { code: code.replace(/^(?:#!.*\n)?/, `$&${first}`), map: null } : undefined
      },
    },
  }
}

/** Stands for the way to `dist` until it is known in which file a module is. */
const WAY = '__WAY_TO_DIST__'

/** In every module `import.meta.url` is what it would be at the place of its source. */
const ownUrls: Plugin = {
  name: 'own-urls',
  transform: {
    filter: { id: /\/src\/.*\.ts$/, code: 'import.meta.url' },
    handler: (code, id) => ({
      code: code.replaceAll('import.meta.url', `new URL('${WAY}${placeOf(id)}.js', import.meta.url).href`),
      map: null,
    }),
  },
  renderChunk: (code, { fileName }) =>
    code.includes(WAY)
      ? { code: code.replaceAll(WAY, `${relative(dirname(fileName), '.') || '.'}/`), map: null }
      : undefined,
}

const OUTPUT: OutputOptions = {
  format: 'esm',
  entryFileNames: '[name].js',
  // By their content: a service that runs still finds its own parts when newer ones are there.
  chunkFileNames: 'parts/[name]-[hash].js',
  keepNames: true,
  minify: false,
  comments: { legal: false, annotation: false, jsdoc: false },
  // V8 keeps a file with one other character in two bytes a character.
  charset: 'ascii',
  sourcemap: true,
  sourcemapExcludeSources: true,
  // As seen from the folder of the package, wherever the dependencies were.
  sourcemapPathTransform: (source, map) =>
    relative(ROOT, join(dirname(map), source)).replace(/^.*?(?=node_modules\/)/, ''),
}

/** Everything in `dist` that is not of this build: parts of others, which a service that runs may still need for a while. */
function sweep(written: ReadonlySet<string>, olderThan: number): void {
  for (const name of globSync('**', { cwd: DIST })) {
    const stats = statSync(join(DIST, name), { throwIfNoEntry: false })
    const isOld = stats?.isFile() === true && stats.mtimeMs < olderThan
    if (isOld && !written.has(name)) rmSync(join(DIST, name), { force: true })
  }
  // Of builds that were killed.
  for (const name of globSync('.new-*', { cwd: DIST }))
    if ((statSync(join(DIST, name), { throwIfNoEntry: false })?.mtimeMs ?? Infinity) < olderThan)
      rmSync(join(DIST, name), { recursive: true, force: true })
}

/** @returns the paths of the modules that are in it */
async function build(input: Readonly<Record<string, string>>, output: OutputOptions): Promise<string[]> {
  const bundle = await rolldown({
    cwd: ROOT,
    input,
    platform: 'node',
    external: ['pg-native'],
    plugins: [programs(), ownUrls, offers],
    logLevel: 'silent',
    // A bundler takes calls such as `decodeURIComponent(x)` for calls that do nothing but compute, and leaves them out where nobody
    // uses the result, together with their `catch`. Nothing is left out, here nor by `minify`: it would save a fifteenth.
    treeshake: false,
  })
  const { output: files } = await bundle.write(output)
  await bundle.close()
  return files.flatMap((file) => (file.type === 'chunk' ? Object.keys(file.modules) : []))
}

/**
 * Builds beside `dist` and moves file by file, the program of the command line last: whoever starts meanwhile finds a whole
 * bundle, and two builds of the same sources move the same files.
 *
 * @param olderThan files of earlier builds that were written before this time are removed
 * @returns the paths of the modules that are in it
 */
export async function makeBundle(olderThan: number): Promise<{ readonly modules: readonly string[] }> {
  const began = new Date()
  const fresh = join(DIST, `.new-${process.pid}`)
  try {
    mkdirSync(fresh, { recursive: true })
    const shared = { ...fromPlaces(ENTRIES), [OFFERS]: OFFERS }
    const modules = await build(shared, { ...OUTPUT, dir: fresh })
    for (const place of WHOLE)
      modules.push(...(await build(fromPlaces([place]), { ...OUTPUT, dir: fresh, codeSplitting: false })))
    for (const file of globSync(['**/*.{css,js,bash,zsh}', 'extensions/*/guides/*.md'], { cwd: SRC }))
      cpSync(join(SRC, file), join(fresh, file), { recursive: true })
    const files = globSync('**', { cwd: fresh }).filter((file) => statSync(join(fresh, file)).isFile())
    utimesSync(join(fresh, MAIN), began, began)
    for (const file of files.toSorted((a, b) => Number(a === MAIN) - Number(b === MAIN))) {
      mkdirSync(dirname(join(DIST, file)), { recursive: true })
      renameSync(join(fresh, file), join(DIST, file))
    }
    sweep(new Set(files), olderThan)
    return { modules }
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}
