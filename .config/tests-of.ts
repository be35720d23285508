/** `npm run tests-of C8.4`: the files and titles of the tests that cite a clause of the protocol or a threat, or a part of one. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { citedIn, textFiles, titlesOf } from '../test/support/cited.ts'

const ROOT = join(import.meta.dirname, '..')
const asked = process.argv.slice(2)
if (asked.length === 0 || asked.some((id) => citedIn(id)[0] !== id)) {
  console.error('npm run tests-of CLAUSE …: such as C8.4, or T2.9 for a threat')
  process.exit(2)
}
/** C8.4 asks for C8.4 and C8.4a; C8 for all of its clauses. */
const isAsked = (id: string): boolean =>
  asked.some((each) => id === each || (id.startsWith(each) && !/^\d/.test(id.slice(each.length))))

let found = 0
for (const file of textFiles(ROOT, 'test').filter((each) => /\.(?:test|contract)\.ts$/.test(each))) {
  if (!citedIn(readFileSync(join(ROOT, file), 'utf8')).some(isAsked)) continue
  const titles = titlesOf(join(ROOT, file)).filter((title) => citedIn(title).some(isAsked))
  if (titles.length === 0) continue
  console.log(file)
  for (const title of titles) console.log(`  ${title.replace(/^['"`]|['"`]$/g, '')}`)
  found += titles.length
}
if (found === 0)
  console.error(
    `No title names ${asked.join(' or ')}: src/protocol/README.md says which clauses have no test.`,
  )
process.exitCode = found === 0 ? 1 : 0
