import { tellLamp } from "./lamp.mjs"

test("a lamp does what it is told", async () => {
  expect(await tellLamp()).toEqual([1, "The cloud is closed"])
})
