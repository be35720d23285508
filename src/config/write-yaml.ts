/** Writes YAML. Reading it is yaml.ts. */
import { isCollection, Document, visit } from 'yaml'

const WIDTH = 116

/** A value as YAML 1.2: one line for each entry down to `depth`, and what is deeper in it on that line (flow style). */
export function writeYaml(value: unknown, depth: number): string {
  const document = new Document(value, { version: '1.2', aliasDuplicateObjects: false })
  visit(document, {
    Collection: (_key, node, path) => {
      if (path.filter(isCollection).length >= depth) node.flow = true
    },
  })
  return document.toString({ lineWidth: WIDTH, flowCollectionPadding: true })
}
