import asyncio

async def one(n):
    await asyncio.sleep(0.001 * n)
    return n * n

async def main():
    return [*await asyncio.gather(*(one(n) for n in range(3))), await asyncio.to_thread(lambda: 9)]

print(asyncio.run(main()))
