import type { Recipe } from './service.ts'
import { pythonService } from './programs.ts'

/** The real server of each page of config/recipes, by its name. `npm run recipe NAME` starts it for a reader. */
export const RECIPES: Readonly<Record<string, Recipe>> = {
  'server-sent-events': { needs: ['curl', 'python3'], start: pythonService('event-source.py') },
}
