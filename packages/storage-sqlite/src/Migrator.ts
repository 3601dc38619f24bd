/**
 * Brings the tables of a file up to date.
 */
import type Database from "libsql"

/** A released migration never changes; a change of the tables is a new one. */
export interface Migration {
  readonly number: number
  readonly name: string
  /** Statements, each with a semicolon at its end. */
  readonly sql: string
}

interface Applied {
  readonly number: number
  readonly name: string
}

/**
 * Runs the migrations that the database lacks, in order and in one transaction.
 * Throws, and changes nothing, if the database has one that is not here.
 */
export const migrate = (database: Database.Database, migrations: ReadonlyArray<Migration>): void => {
  database.exec("BEGIN IMMEDIATE")
  try {
    database.exec("CREATE TABLE IF NOT EXISTS migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT")
    const applied = database.prepare("SELECT number, name FROM migration ORDER BY number").all([]) as Array<Applied>
    const names = new Map(migrations.map(({ name, number }) => [number, name]))
    for (const { name, number } of applied) {
      const known = names.get(number)
      if (known === name) continue
      throw new Error(
        known === undefined
          ? `a newer version has changed it (migration ${number}, ${name}). ` +
            "Start the newer version, or restore a copy from before its first start."
          : `its migration ${number} is "${name}", and here it is "${known}". It belongs to another program.`
      )
    }
    const done = new Set(applied.map(({ number }) => number))
    const insert = database.prepare("INSERT INTO migration (number, name) VALUES (?, ?)")
    for (const { name, number, sql } of migrations) {
      if (done.has(number)) continue
      database.exec(sql)
      insert.run([number, name])
    }
    database.exec("COMMIT")
  } catch (cause) {
    if (database.inTransaction) database.exec("ROLLBACK")
    throw cause
  }
}
