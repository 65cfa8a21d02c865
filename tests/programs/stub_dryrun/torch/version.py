__version__ = '2.9.1+cu128'
cuda: str = '12.8'
hip = None
