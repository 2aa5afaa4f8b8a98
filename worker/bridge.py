from lmwire_worker.__main__ import main

main()
